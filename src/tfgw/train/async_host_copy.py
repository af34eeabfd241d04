"""Asynchronous copies from a GPU to the host."""

import torch
from torch import Tensor


class AsyncHostCopy:
    """An asynchronous copy of a small tensor to the host, in float64."""

    def __init__(self, tensor: Tensor) -> None:
        self._values = tensor.detach().to("cpu", torch.float64, non_blocking=tensor.is_cuda, copy=True)
        self._done = torch.cuda.current_stream(tensor.device).record_event() if tensor.is_cuda else None

    def values(self) -> Tensor:
        """Wait for the copy and return its values."""
        if self._done is not None:
            self._done.synchronize()
        return self._values

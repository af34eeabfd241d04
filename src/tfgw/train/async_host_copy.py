"""Copies from a GPU to the host that do not make the host wait."""

import torch
from torch import Tensor


class AsyncHostCopy:
    """A copy of a small tensor to the host, in float64, while the GPU goes on with its work."""

    def __init__(self, tensor: Tensor) -> None:
        self._values = tensor.detach().to("cpu", torch.float64, non_blocking=tensor.is_cuda, copy=True)
        self._done = torch.cuda.current_stream(tensor.device).record_event() if tensor.is_cuda else None

    def values(self) -> Tensor:
        """The copied values; waits until they have arrived."""
        if self._done is not None:
            self._done.synchronize()
        return self._values

"""Numbers that a GPU computes, while the host has something else to do."""

import torch
from torch import Tensor


class Arriving:
    """A few numbers on their way to the host, in float64; a GPU need not stop for them."""

    def __init__(self, numbers: Tensor) -> None:
        self._values = numbers.detach().to("cpu", torch.float64, non_blocking=numbers.is_cuda, copy=True)
        self._arrival = torch.cuda.current_stream(numbers.device).record_event() if numbers.is_cuda else None

    def values(self) -> Tensor:
        """All of them, once they have arrived."""
        if self._arrival is not None:
            self._arrival.synchronize()
        return self._values

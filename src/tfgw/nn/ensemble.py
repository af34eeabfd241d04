"""Several networks of one architecture as one model, trained side by side."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from tfgw.nn.padding import current_padding


class Ensemble(nn.Module):
    """Networks that see the same batches and learn independently; together they predict the mean of their outputs.

    Class scores (logits) are averaged before the softmax, so that the score of a class is the sum of what its members
    contribute. In training mode the outputs of all members are returned, ``(num_members, batch_size, out_channels)``:
    the loss is the mean of their losses, and the gradient of each member that of its own loss alone, up to a factor.

    Args:
        members: The networks; each is called with the same arguments.
    """

    supports_padding = True

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        if not self.members:
            raise ValueError("members: an ensemble needs at least one network")

    def embed(self, *args: Any, **inputs: Any) -> Tensor:
        """The members' embeddings side by side, ``(batch_size, num_members * channels)``."""
        return torch.cat([member.embed(*args, **inputs) for member in self.members], dim=1)  # type: ignore[operator]

    def forward(self, *args: Any, **inputs: Any) -> Tensor:
        """Outputs ``(batch_size, out_channels)``; of every member while training."""
        outputs = torch.stack(self._outputs(*args, **inputs))
        losses = [member.auxiliary_loss for member in self.members if hasattr(member, "auxiliary_loss")]
        if losses:
            self.auxiliary_loss = torch.stack([torch.as_tensor(loss) for loss in losses]).mean()
        return outputs if self.training else outputs.mean(0)

    def _outputs(self, *args: Any, **inputs: Any) -> list[Tensor]:
        padding = current_padding()
        if padding is None or not padding.is_node.is_cuda:
            return [member(*args, **inputs) for member in self.members]
        # A step that is recorded as a CUDA graph: a small batch leaves most of a GPU idle, so members are branches of
        # the graph, which run at the same time.
        current = torch.cuda.current_stream()
        streams = [current, *_streams(current.device_index, len(self.members) - 1)]
        outputs = []
        for member, stream in zip(self.members, streams, strict=True):
            stream.wait_stream(current)
            with torch.cuda.stream(stream):
                outputs.append(member(*args, **inputs))
        for stream in streams:
            current.wait_stream(stream)
        return outputs


@cache
def _streams(device: int, count: int) -> list[torch.cuda.Stream]:
    """The same streams for good: cuBLAS allocates a workspace for each stream that it sees, and never frees it."""
    return [torch.cuda.Stream(device) for _ in range(count)]


def members_of(model: nn.Module) -> list[Any]:
    """The members of an ensemble; of any other model, the model itself."""
    return list(model.members) if isinstance(model, Ensemble) else [model]

"""An ensemble of networks of the same architecture."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from tfgw.nn.concurrent_solves import solving_at_once
from tfgw.nn.padding import current_padding


class Ensemble(nn.Module):
    """An ensemble of networks that are trained independently on the same batches. It predicts the mean of their
    outputs.

    Class scores (logits) are averaged before the softmax, so that the score of a class is a sum of contributions of the
    members. In training mode, the outputs of all members are returned, ``(num_members, batch_size, out_channels)``. The
    loss is the mean of their losses, so the gradient of each member is that of its own loss, up to a factor.

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
        """Concatenated embeddings of the members, ``(batch_size, num_members * channels)``."""
        return torch.cat([member.embed(*args, **inputs) for member in self.members], dim=1)  # type: ignore[operator]

    def forward(self, *args: Any, **inputs: Any) -> Tensor:
        """Outputs ``(batch_size, out_channels)``; in training mode, those of every member."""
        outputs = torch.stack(self._outputs(*args, **inputs))
        losses = [member.auxiliary_loss for member in self.members if hasattr(member, "auxiliary_loss")]
        if losses:
            self.auxiliary_loss = torch.stack([torch.as_tensor(loss) for loss in losses]).mean()
        return outputs if self.training else outputs.mean(0)

    def _outputs(self, *args: Any, **inputs: Any) -> list[Tensor]:
        padding = current_padding()
        if padding is None or not padding.is_node.is_cuda:
            return [member(*args, **inputs) for member in self.members]
        # During recording of a CUDA graph: a small batch leaves most of a GPU idle, so the members become parallel
        # branches of the graph. None of them uses the current stream, which may have to wait for the other members in
        # the backward pass.
        current = torch.cuda.current_stream()
        streams = _streams(current.device_index, len(self.members))
        outputs = []
        with solving_at_once(len(self.members)):
            for member, stream in zip(self.members, streams, strict=True):
                stream.wait_stream(current)
                with torch.cuda.stream(stream):
                    outputs.append(member(*args, **inputs))
        for stream in streams:
            current.wait_stream(stream)
        return outputs


@cache
def _streams(device: int, count: int) -> list[torch.cuda.Stream]:
    """Return streams for the members. They are created once, because cuBLAS never frees the workspace of a stream."""
    return [torch.cuda.Stream(device) for _ in range(count)]


def members_of(model: nn.Module) -> list[Any]:
    """Return the members of an ensemble, or the model itself."""
    return list(model.members) if isinstance(model, Ensemble) else [model]

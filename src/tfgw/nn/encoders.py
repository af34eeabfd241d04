"""Node encoders: message passing before the pooling layer."""

from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINConv

from tfgw.nn.batch_norm import BatchNorm, NormSequential
from tfgw.nn.cuda import launching
from tfgw.nn.cuda.neighbour_kernel import NeighbourSums
from tfgw.nn.linear import Linear, Perceptron
from tfgw.nn.native_layers import encoded_nodes, is_unobserved, row_steps, runs_natively
from tfgw.nn.padding import current_padding


class Encoder(Protocol):
    """Interface of encoders: any module that maps ``(x, edge_index)`` to ``(num_nodes, out_channels)``.

    To be recorded in a CUDA graph, it must support padded batches: :mod:`tfgw.train.cuda_graph`.
    """

    out_channels: int

    def __call__(self, x: Tensor, edge_index: Tensor) -> Tensor: ...


class GINLayer(GINConv):
    """``GINConv`` without the overhead of message passing in Python: the same operations, in half the time.

    ε is fixed at 0: the features of a node are added to the sum over its neighbours.

    Args:
        network: Network applied to the sums.
        self_loops: Whether every node is its own neighbour as well, so that its features are added twice (ε = 1).
    """

    supports_padding = True

    def __init__(self, network: nn.Module, *, self_loops: bool = False) -> None:
        super().__init__(network, eps=float(self_loops))
        self.self_loops = self_loops

    @property
    def own_factor(self) -> float:
        """Factor of the features of a node beside the sum over its neighbours, 1 + ε."""
        return 2.0 if self.self_loops else 1.0

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self.explain:  # explainers of PyTorch Geometric mask the messages
            return super().forward(x, edge_index)
        padding = current_padding()
        if padding is not None and padding.links is edge_index and launching.is_supported(x):
            return self.nn(NeighbourSums.apply(x, edge_index, self.own_factor))
        source, target = edge_index.unbind()
        try:
            messages = x.index_select(0, source)
            sums = torch.zeros_like(x).scatter_add_(0, target.unsqueeze(1).expand_as(messages), messages)
        except (IndexError, RuntimeError):
            return super().forward(x, edge_index)  # raises a clear error for invalid edges
        return self.nn(sums + (2 * x if self.self_loops else x))


class GINEncoder(nn.Module):
    """The paper's φ: GIN layers with Jumping Knowledge; the raw features are part of the concatenation.

    Args:
        in_channels: Features per node.
        width: Number of features per layer.
        num_layers: Number of layers L; with 0, the encoding is the raw features.
        activation: Whether a ReLU follows the batch normalisation at the end of each layer.
        self_loops: Whether every node is its own neighbour as well.

    Attributes:
        out_channels: ``in_channels + num_layers * width``.
    """

    supports_padding = True

    def __init__(
        self,
        in_channels: int,
        *,
        width: int = 16,
        num_layers: int = 2,
        activation: bool = False,
        self_loops: bool = False,
    ) -> None:
        super().__init__()
        if num_layers < 0:
            raise ValueError(f"num_layers: must not be negative, got {num_layers}")
        if width < 1:
            raise ValueError(f"width: must be at least 1, got {width}")
        self.in_channels = in_channels
        self.out_channels = in_channels + num_layers * width
        inputs = [in_channels, *[width] * num_layers]
        self.convs = nn.ModuleList(
            GINLayer(_perceptron(size, width), self_loops=self_loops) for size in inputs[:num_layers]
        )
        norms = [BatchNorm(width) for _ in range(num_layers)]
        self.norms = nn.ModuleList(NormSequential(norm, nn.ReLU()) if activation else norm for norm in norms)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Encode the nodes ``(num_nodes, in_channels)`` of one graph or of a batch."""
        encoded = self._encoded_natively(x, edge_index) if runs_natively(self, x) else None
        if encoded is not None:
            return encoded
        levels = [x]
        for conv, norm in zip(self.convs, self.norms, strict=True):
            levels.append(norm(conv(levels[-1], edge_index)))
        return torch.cat(levels, dim=-1)

    def _encoded_natively(self, x: Tensor, edge_index: Tensor) -> Tensor | None:
        """Compute all layers in one call of native code, if it can (:mod:`tfgw.nn.native_layers`)."""
        layers = []
        for conv, norm in zip(self.convs, self.norms, strict=True):
            steps = row_steps((cast(nn.Module, conv.nn), norm))
            if steps is None or type(conv) is not GINLayer or conv.explain or not is_unobserved(conv):
                return None
            layers.append((conv.own_factor, steps))
        return encoded_nodes(x, edge_index, layers)


def _perceptron(in_channels: int, width: int) -> Perceptron:
    return Perceptron(Linear(in_channels, width), BatchNorm(width), nn.ReLU(), Linear(width, width))

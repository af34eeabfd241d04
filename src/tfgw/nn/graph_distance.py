"""The distances of a kernel machine: what describes the nodes, and the trade-off between them and the structure."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfgw.nn.refinement import averaged_degrees, refined_features


class NodeDescription(NamedTuple):
    """Features without parameters that describe a node and its neighbourhood.

    Attributes:
        level: Number of refinement steps, the radius of the neighbourhood.
        degrees: Whether nodes are described by their degrees instead of their features.
    """

    level: int
    degrees: bool = False

    def features(self, x: Tensor, edge_index: Tensor, *, discrete: bool) -> Tensor:
        """Return the features of all nodes in double precision, ``(num_nodes, channels)``.

        Args:
            x: Node features ``(num_nodes, in_channels)`` of one graph or a batch, on any device.
            edge_index: Edges ``(2, num_edges)``, in both directions.
            discrete: Whether each row of ``x`` is a label.
        """
        edges = edge_index.cpu()
        if self.degrees:
            found = averaged_degrees(edges, len(x), self.level)
        else:
            found = refined_features(x.cpu(), edges, self.level, discrete=discrete)
        return found.to(x.device, torch.float64)


class GraphDistance(NamedTuple):
    """A Fused Gromov–Wasserstein distance between graphs with described nodes.

    Attributes:
        nodes: Description of the nodes.
        alpha: Trade-off between features (0) and structure (1).
    """

    nodes: NodeDescription
    alpha: float

    @property
    def node_cost(self) -> str:
        """Cost between the features of two nodes, as in :func:`tfgw.ot.pairwise`.

        Degrees have long tails, which a squared cost would exaggerate.
        """
        return "euclidean" if self.nodes.degrees else "squared_euclidean"

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of :func:`tfgw.ot.pairwise` for graphs with described nodes, which are in canonical order."""
        return {"alpha": self.alpha, "node_cost": self.node_cost, "canonical": False}

    def __str__(self) -> str:
        kind = "degrees" if self.nodes.degrees else f"α = {self.alpha:g}"
        return f"level {self.nodes.level}, {kind}"

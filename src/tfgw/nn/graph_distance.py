"""The distances of a kernel machine: what describes the nodes, and the trade-off between them and the structure."""

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from tfgw.datasets.clustering import clustering_coefficients
from tfgw.nn.cycles import shortest_cycles
from tfgw.nn.refinement import averaged_degrees, averaged_features, label_codes, label_numbers, refined_labels

Description = Literal["labels", "cycles", "codes", "averages", "degrees", "clustering"]


class NodeDescription(NamedTuple):
    """Features without parameters that describe a node and its neighbourhood.

    All levels up to the given one have equal shares in the cost between two nodes.

    Attributes:
        kind: ``"labels"`` are Weisfeiler–Lehman labels as numbers, one per level. ``"cycles"`` are those of labels that
            contain the length of the shortest cycle through the node. ``"codes"`` are labels, each encoded by a vector,
            so that different labels are at a squared distance of about 1. ``"averages"`` are features averaged over
            neighbours. ``"degrees"`` are logarithms of degrees averaged over neighbours. ``"clustering"`` is the local
            clustering coefficient, at level 0 only.
        level: Number of refinement steps, the radius of the neighbourhood.
    """

    kind: Description
    level: int

    def features(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the features of all nodes in double precision, ``(num_nodes, channels)``.

        Args:
            x: Node features ``(num_nodes, in_channels)`` of one graph or a batch, on any device.
            edge_index: Edges ``(2, num_edges)``, in both directions.
        """
        return self._features(x.cpu(), edge_index.cpu()).to(x.device, torch.float64)

    def _features(self, x: Tensor, edge_index: Tensor) -> Tensor:
        match self.kind:
            case "labels":
                return label_numbers(refined_labels(x, edge_index, self.level))
            case "cycles":
                lengths = shortest_cycles(edge_index, len(x))[:, None]
                return label_numbers(refined_labels(torch.cat([x, lengths.to(x.dtype)], dim=1), edge_index, self.level))
            case "codes":
                return label_codes(refined_labels(x, edge_index, self.level)) / (self.level + 1) ** 0.5
            case "averages":
                return averaged_features(x, edge_index, self.level) / ((self.level + 1) * x.shape[1]) ** 0.5
            case "degrees":
                return averaged_degrees(edge_index, len(x), self.level)
            case "clustering":
                return clustering_coefficients(edge_index, len(x))


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

        Labels are equal or different. Degrees have long tails, which a squared cost would exaggerate. With the
        Euclidean cost, the distance between clustering coefficients is that between two distributions on a line.
        """
        match self.nodes.kind:
            case "labels" | "cycles":
                return "hamming"
            case "degrees" | "clustering":
                return "euclidean"
        return "squared_euclidean"

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of :func:`tfgw.ot.pairwise` for graphs with described nodes, which are in canonical order."""
        return {"alpha": self.alpha, "node_cost": self.node_cost, "canonical": False}

    def __str__(self) -> str:
        kind = self.nodes.kind if self.nodes.kind in ("degrees", "cycles", "clustering") else f"α = {self.alpha:g}"
        return f"level {self.nodes.level}, {kind}"

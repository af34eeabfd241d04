"""A kernel machine on distances to all training graphs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, NamedTuple, Self, Unpack, get_args

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tfgw import ot
from tfgw.nn.graph_distance import GraphDistance, NodeDescription
from tfgw.nn.tfgw_pooling import GraphInputs
from tfgw.nn.threads import solver_threads
from tfgw.ot.graph_lists import read_graphs
from tfgw.ot.ragged import GraphList

FeatureKind = Literal["labels", "averages"]
Combination = Literal["scores", "distances", "auto"]


@dataclass(frozen=True, kw_only=True)
class KernelConfig:
    """The distances of a :class:`KernelModel`, and how they are combined.

    Args:
        in_channels: Number of node features.
        out_channels: Number of classes, or of values to predict.
        features: ``"labels"``: each row of features is a label, refined by the Weisfeiler–Lehman algorithm.
            ``"averages"``: features are averaged over neighbours.
        levels: Levels of refinement: the number of steps.
        alphas: Trade-offs between features (0) and structure (1).
        label_levels: Further levels at which labels are compared, without structure. They take little time.
        degrees: Whether graphs are also compared by the degrees of their nodes, at all ``levels``.
        cycles: Whether labels are also compared together with the lengths of cycles, at all ``levels``.
        clustering: Whether graphs are also compared by the clustering coefficients of their nodes. ``None``: only if
            there is one regression on all distances.
        combine: ``"scores"``: there is a ridge regression for each distance, and their scores are averaged.
            ``"distances"``: there is one ridge regression, on the sum of all distances, each relative to its median.
            ``"auto"``: training chooses one of them.
        n_starts: Number of starts of the solver per pair.
    """

    in_channels: int
    out_channels: int
    features: FeatureKind
    levels: tuple[int, ...] = (0, 1, 2, 3)
    alphas: tuple[float, ...] = (0.0, 0.5)
    label_levels: tuple[int, ...] = ()
    degrees: bool = True
    cycles: bool = True
    clustering: bool | None = None
    combine: Combination = "auto"
    n_starts: int = 1

    def __post_init__(self) -> None:
        for name in ("levels", "alphas"):
            values = getattr(self, name)
            if not values:
                raise ValueError(f"{name}: needs at least one value")
            if len(set(values)) != len(values):
                raise ValueError(f"{name}: has a value twice, {values}")
        if min(self.levels) < 0:
            raise ValueError(f"levels: must not be negative, got {min(self.levels)}")
        if len({*self.levels, *self.label_levels}) != len(self.levels) + len(self.label_levels):
            raise ValueError(f"label_levels: has a value twice or in levels, {self.label_levels}")
        if self.label_levels and (self.features != "labels" or min(self.label_levels) < 0):
            raise ValueError(f"label_levels: must be levels of labels that are not negative, got {self.label_levels}")
        for alpha in self.alphas:
            if not 0 <= alpha <= 1:
                raise ValueError(f"alphas: must lie in [0, 1], got {alpha}")
        if self.combine not in get_args(Combination):
            raise ValueError(f"combine: must be one of {', '.join(get_args(Combination))}, got {self.combine!r}")
        if self.n_starts < 1:
            raise ValueError(f"n_starts: must be at least 1, got {self.n_starts}")

    @property
    def distances(self) -> list[GraphDistance]:
        """The distances: every α, degrees and cycles of every level, then clustering, then ``label_levels``."""
        found = [self.feature_distance(level, alpha) for level in self.levels for alpha in self.alphas]
        if self.degrees:
            found += [GraphDistance(NodeDescription("degrees", level), 0.0) for level in self.levels]
        if self.cycles and self.features == "labels":
            found += [GraphDistance(NodeDescription("cycles", level), 0.0) for level in self.levels]
        if self.clustering is not False:
            found.append(GraphDistance(NodeDescription("clustering", 0), 0.0))
        return found + [self.feature_distance(level, 0.0) for level in self.label_levels]

    def feature_distance(self, level: int, alpha: float) -> GraphDistance:
        """The distance between node features at a level, with this trade-off."""
        if self.features == "averages":
            return GraphDistance(NodeDescription("averages", level), alpha)
        # Without structure, distances between labels have a closed form; with structure, the cost must be squared.
        return GraphDistance(NodeDescription("labels" if alpha == 0 else "codes", level), alpha)


class StackedGraphs(NamedTuple):
    """Concatenated graphs, as in a batch of PyTorch Geometric."""

    x: Tensor
    edge_index: Tensor
    batch: Tensor
    edge_weight: Tensor | None = None
    node_weights: Tensor | None = None


class KernelModel(nn.Module):
    """Scores of a graph from its distances to all training graphs:

    score_c(G) = s · Σ_m w_m Σ_i a_mic exp(−Σ_d γ_md FGW_d(G, G_i))

    with ridge regressions m, distances d and training graphs G_i. There is a regression for each distance, or one for
    all distances together. In terms of the paper, all training graphs are templates, the encoder is fixed, and the head
    is a kernel machine.

    Args:
        config: The distances.
        graphs: The preprocessed training graphs.
        rates: γ of each distance in each regression, ``(num_regressions, num_distances)``.
        weights: Weight w of each regression ``(num_regressions,)``; they sum to 1.
        coefficients: The coefficients a, ``(num_regressions, num_graphs, out_channels)``.
        factor: The factor s, which turns class scores into logits.
        mean_distances: Mean distance of the training graphs to each training graph ``(num_distances, num_graphs)``,
            the reference of explanations.
        left_out: Leave-one-out outputs for the training graphs ``(num_graphs, out_channels)``.
        num_threads: Number of solver threads (default: :func:`torch.get_num_threads`).
    """

    rates: Tensor
    weights: Tensor
    factor: Tensor
    mean_distances: Tensor
    left_out: Tensor
    graph_x: Tensor
    graph_edge_index: Tensor
    graph_batch: Tensor
    graph_edge_weight: Tensor | None
    graph_node_weights: Tensor | None

    def __init__(
        self,
        config: KernelConfig,
        graphs: StackedGraphs,
        *,
        rates: Tensor,
        weights: Tensor,
        coefficients: Tensor,
        factor: Tensor,
        mean_distances: Tensor,
        left_out: Tensor,
        num_threads: int | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.num_threads = num_threads
        for name, value in graphs._asdict().items():
            self.register_buffer(f"graph_{name}", value)
        self.coefficients = nn.Parameter(coefficients, requires_grad=False)
        self.register_buffer("rates", rates)
        self.register_buffer("weights", weights)
        self.register_buffer("factor", factor)
        self.register_buffer("mean_distances", mean_distances)
        self.register_buffer("left_out", left_out)
        self._described: dict[NodeDescription, ot.GraphBatch] = {}
        self._compared: dict[tuple[NodeDescription, bool], GraphList] = {}

    @property
    def num_graphs(self) -> int:
        """Number of training graphs."""
        return self.coefficients.shape[1]

    def training_graph(self, number: int) -> Data:
        """Return a preprocessed training graph."""
        first, last = torch.searchsorted(self.graph_batch, self.graph_batch.new_tensor([number, number + 1])).tolist()
        nodes, source = slice(first, last), self.graph_edge_index[0]
        edges = (source >= first) & (source < last)
        graph = Data(x=self.graph_x[nodes], edge_index=self.graph_edge_index[:, edges] - first)
        if self.graph_edge_weight is not None:
            graph.edge_weight = self.graph_edge_weight[edges]
        if self.graph_node_weights is not None:
            graph.node_weights = self.graph_node_weights[nodes]
        return graph

    def embed(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, **graphs: Unpack[GraphInputs]
    ) -> Tensor:
        """Distances to the training graphs, ``(batch_size, num_distances * num_graphs)``."""
        return torch.cat(self.distances(x, edge_index, batch, **graphs), dim=1)

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, **graphs: Unpack[GraphInputs]
    ) -> Tensor:
        """Class scores (logits) or predicted values, ``(batch_size, out_channels)``."""
        return self.scores(self.distances(x, edge_index, batch, **graphs))

    def scores(self, distances: Sequence[Tensor]) -> Tensor:
        """Outputs for known distances to the training graphs, ``(batch_size, num_graphs)`` for each kind."""
        regressions = zip(self.rates, self.weights, self.coefficients, strict=True)
        return self.factor * _sum(weight * _scores(_exponents(distances, rates), a) for rates, weight, a in regressions)

    def kernels(self, distances: Sequence[Tensor]) -> list[Tensor]:
        """exp(−Σ_d γ_md distance_d) for each regression m, ``(batch_size, num_graphs)``, as in :meth:`scores`."""
        return [torch.exp(-_exponents(distances, rates)) for rates in self.rates]

    @property
    def distance_weights(self) -> Tensor:
        """Weight of each distance ``(num_distances,)``: those of regressions, divided by mean shares in exponents."""
        means = self.rates * self.mean_distances.mean(1)
        shares = torch.where(means.sum(1, keepdim=True) > 0, means, self.rates)
        return self.weights @ (shares / shares.sum(1, keepdim=True))

    def distances(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, **graphs: Unpack[GraphInputs]
    ) -> list[Tensor]:
        """Distances to the training graphs, ``(batch_size, num_graphs)`` for each kind of ``config.distances``."""
        kinds = self.config.distances
        given = {
            nodes: self.described_batch(nodes, x, edge_index, batch, **graphs)
            for nodes in dict.fromkeys(kind.nodes for kind in kinds)
        }
        return [
            ot.pairwise(
                given[kind.nodes],
                self.compared_training_graphs(kind),
                **kind.options,
                n_starts=self.config.n_starts,
                num_threads=solver_threads(self.num_threads) or None,
            )
            for kind in kinds
        ]

    def described_batch(
        self,
        nodes: NodeDescription,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        **graphs: Unpack[GraphInputs],
    ) -> ot.GraphBatch:
        """Return the inputs of :meth:`forward` with the features of a description."""
        if graphs.get("structure") is not None:
            raise ValueError("structure: a kernel machine compares graphs by their edges")
        return ot.GraphBatch(
            nodes.features(x, edge_index),
            batch=batch,
            batch_size=graphs.get("batch_size"),
            edge_index=edge_index,
            edge_weight=graphs.get("edge_weight"),
            node_weights=graphs.get("node_weights"),
        )

    def _apply(self, *args: Any, **options: Any) -> Self:
        before = self.graph_x
        moved = super()._apply(*args, **options)
        if (self.graph_x.device, self.graph_x.dtype) != (before.device, before.dtype):
            self._described.clear()
            self._compared.clear()
        return moved

    def described_training_graphs(self, nodes: NodeDescription) -> ot.GraphBatch:
        """Return the training graphs with the features of a description."""
        if nodes not in self._described:
            self._described[nodes] = ot.GraphBatch(
                nodes.features(self.graph_x, self.graph_edge_index),
                batch=self.graph_batch,
                batch_size=self.num_graphs,
                edge_index=self.graph_edge_index,
                edge_weight=self.graph_edge_weight,
                node_weights=self.graph_node_weights,
            )
        return self._described[nodes]

    def compared_training_graphs(self, kind: GraphDistance) -> GraphList:
        """Return the training graphs as :func:`tfgw.ot.pairwise` reads them. They are read once for many calls."""
        key = (kind.nodes, kind.alpha == 0)
        if key not in self._compared:
            self._compared[key] = read_graphs(self.described_training_graphs(kind.nodes), features_only=key[1])
        return self._compared[key]


def _exponents(distances: Sequence[Tensor], rates: Tensor) -> Tensor:
    """Σ_d γ_d distance_d over the distances of a regression."""
    used = rates.nonzero().flatten().tolist() or [0]
    return _sum(rates[number] * distances[number] for number in used)


def _scores(exponents: Tensor, coefficients: Tensor) -> Tensor:
    """Σ_i a_i exp(−exponent_i), row by row: vectorised over all rows, the last bits would depend on their number."""
    transposed = coefficients.T.contiguous()
    rows = [transposed.mv(torch.exp(-row)) for row in exponents]
    return torch.stack(rows) if rows else exponents @ coefficients


def _sum(terms: Iterable[Tensor]) -> Tensor:
    """Add one by one, because the order of a vectorised sum depends on the batch size."""
    return reduce(torch.add, terms)

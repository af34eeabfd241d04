"""Solve pairs exactly as :func:`tfgw.ot.pairwise` does, and return the plans and the quality of each solution."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tfgw.ot.diagnose import Diagnosis
from tfgw.ot.graph_lists import read_lists
from tfgw.ot.inputs import GraphBatch
from tfgw.ot.pair_solver import NODE_COSTS, PairOptions, PairSolver
from tfgw.ot.problem import MAX_ITER, TOL
from tfgw.ot.ragged import GraphList, RaggedSet, ragged_set
from tfgw.ot.starts import START_KINDS


class PlanEntries(NamedTuple):
    """The non-zero entries of the plans of all pairs, ``(num_entries,)`` each, sorted by pair.

    Attributes:
        pairs: Index of the pair: ``b * K + k`` for graph b and other graph k of K.
        rows: Node of the graph.
        columns: Node of the other graph.
        mass: Transported mass.
    """

    pairs: Tensor
    rows: Tensor
    columns: Tensor
    mass: Tensor


class PairDetails(NamedTuple):
    """Solutions of all pairs of B graphs and K other graphs.

    Attributes:
        diagnosis: Distances and their quality, ``(B, K)``. ``distances`` equal those of :func:`tfgw.ot.pairwise` bit
            for bit. ``lower_bounds`` are 0 if they were not requested.
        plans: The plans.
    """

    diagnosis: Diagnosis
    plans: PlanEntries


def pair_details(
    graphs: Iterable[Any] | GraphBatch,
    others: Iterable[Any] | GraphBatch,
    *,
    alpha: float,
    node_cost: str = NODE_COSTS[0],
    n_starts: int = 1,
    lower_bounds: bool = False,
    num_threads: int | None = None,
) -> PairDetails:
    """Compare each graph with each other graph, in the given node order, on the CPU.

    Args:
        graphs: The graphs, as in :func:`tfgw.ot.pairwise`.
        others: The graphs to compare with.
        alpha: Trade-off between features (0) and structure (1).
        node_cost: Cost between features, as in :func:`tfgw.ot.pairwise`.
        n_starts: Number of starts per pair.
        lower_bounds: Whether to compute a lower bound of each distance; see :func:`tfgw.ot.diagnose`.
        num_threads: Number of solver threads.
    """
    options = PairOptions.checked(alpha, MAX_ITER, TOL, n_starts, START_KINDS, node_cost)
    lists = read_lists(graphs, others, features_only=options.alpha == 0)
    found = ragged_set(lists, canonical=False)
    solver = PairSolver(found, options, num_threads=num_threads, checkpoint=None, purpose=b"details")
    row, column = (ranks.reshape(-1) for ranks in np.meshgrid(*found.ranks, indexing="ij"))
    (different,) = np.nonzero(row != column)  # equal graphs have distance 0, as in pairwise
    pairs = np.stack([row[different], column[different]], axis=1)
    solved = solver.details(pairs)
    shape = (len(found.ranks[0]), len(found.ranks[1]))

    def spread(values: np.ndarray, equal: Any) -> Tensor:
        whole = np.full(len(row), equal, dtype=values.dtype)
        whole[different] = values
        return torch.from_numpy(whole.reshape(shape))

    bounds = solver.lower_bounds(pairs) if lower_bounds else np.zeros(len(pairs))
    diagnosis = Diagnosis(
        distances=spread(solved["distances"], 0),
        lower_bounds=spread(bounds, 0),
        spreads=spread(solved["spreads"], 0),
        gaps=spread(solved["gaps"], 0),
        local_minima=spread(solved["local_minima"], 1).bool(),
        status=spread(solved["status"], 0),
    )
    plans = _plans(found, row, column, different, solved)
    if lists[0].merged is not None:
        plans = _between_original_nodes(plans, lists)
    return PairDetails(diagnosis, plans)


def _plans(
    graphs: RaggedSet, row: np.ndarray, column: np.ndarray, different: np.ndarray, solved: dict[str, np.ndarray]
) -> PlanEntries:
    pairs = np.repeat(different, solved["plan_counts"])
    # The template of a pair is the graph of lower rank; its nodes are the columns of the solver's plan.
    is_template = (row < column)[pairs]
    rows = np.where(is_template, solved["plan_columns"], solved["plan_rows"])
    columns = np.where(is_template, solved["plan_rows"], solved["plan_columns"])
    equal = np.flatnonzero(row == column)
    weights = [graphs.parts[rank].node_weights for rank in row[equal]]
    nodes = [np.arange(len(h)) for h in weights]
    places = np.concatenate([pairs, np.repeat(equal, [len(h) for h in weights])])
    order = np.argsort(places, kind="stable")
    mass = np.concatenate([solved["plan_mass"], *weights])
    return PlanEntries(
        pairs=torch.from_numpy(places[order]),
        rows=torch.from_numpy(np.concatenate([rows, *nodes])[order].astype(np.int64)),
        columns=torch.from_numpy(np.concatenate([columns, *nodes])[order].astype(np.int64)),
        mass=torch.from_numpy(mass[order]),
    )


def _between_original_nodes(plans: PlanEntries, lists: list[GraphList]) -> PlanEntries:
    """Divide the mass between merged nodes among the original nodes, in proportion to their weights."""
    graphs, others = (_Originals.of(graphs) for graphs in lists)
    pairs, rows, columns, mass = (field.numpy() for field in plans)
    number = len(lists[1])
    source, target = graphs.first[pairs // number] + rows, others.first[pairs % number] + columns
    counts = graphs.counts[source] * others.counts[target]
    entry = np.repeat(np.arange(len(pairs)), counts)
    within = np.arange(len(entry)) - np.repeat(np.cumsum(counts) - counts, counts)
    row, column = np.divmod(within, others.counts[target[entry]])
    row, column = graphs.start[source[entry]] + row, others.start[target[entry]] + column
    return PlanEntries(
        pairs=torch.from_numpy(pairs[entry]),
        rows=torch.from_numpy(graphs.node[row]),
        columns=torch.from_numpy(others.node[column]),
        mass=torch.from_numpy(mass[entry] * graphs.share[row] * others.share[column]),
    )


class _Originals(NamedTuple):
    """Original nodes of a list of graphs with merged nodes, sorted by graph and merged node."""

    first: np.ndarray
    """First merged node of each graph"""
    start: np.ndarray
    """Position of the first original node of each merged node"""
    counts: np.ndarray
    """Number of original nodes of each merged node"""
    node: np.ndarray
    """Original node, within its graph"""
    share: np.ndarray
    """Share of the original node in the weight of its merged node"""

    @classmethod
    def of(cls, graphs: GraphList) -> "_Originals":
        assert graphs.merged is not None
        sizes = np.array([part.num_nodes for part in graphs])
        first = np.cumsum(sizes) - sizes
        place = np.concatenate([nodes.place + begin for nodes, begin in zip(graphs.merged, first, strict=True)])
        node = np.concatenate([np.arange(len(nodes.place)) for nodes in graphs.merged])
        weights = np.concatenate([nodes.weights for nodes in graphs.merged])
        order, counts = np.argsort(place, kind="stable"), np.bincount(place, minlength=sizes.sum())
        totals = np.bincount(place, weights, minlength=sizes.sum())[place]
        share = np.where(totals > 0, weights / np.where(totals > 0, totals, 1), 1 / counts[place])
        return cls(first, np.cumsum(counts) - counts, counts, node[order], share[order])

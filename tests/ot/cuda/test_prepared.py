"""What the kernels prepare for the solve, read back from its memory."""

import numpy as np
import pytest
import torch

from tests.ot.cuda import emulation
from tests.ot.cuda.emulation import EmulatedGpu
from tfgw.ot import _core
from tfgw.ot.problem import RESULTS, Problem

pytestmark = pytest.mark.skipif(emulation.COMPILER is None, reason="no C++ compiler")

PACKED_ROWS = 8  # kPackedRows of structs.cuh
ENTRY = np.dtype([("weight", "f8"), ("row", "i4"), ("col", "i4")])


def prepared(given: Problem) -> dict[str, np.ndarray]:
    """The prepared members by name, as bytes."""
    found = EmulatedGpu().host.solve(given._replace(max_iter=1, tol=1.0), 1e-6, RESULTS)
    assert found is not None
    assert given.edge_index is not None
    (nodes, features), (templates, columns) = given.x.shape, given.template_weights.shape
    places = _core.gpu_prepared(
        graphs=given.batch_size, nodes=nodes, features=features, edges=given.edge_index.shape[1], templates=templates,
        columns=columns,
    )  # fmt: skip
    memory = found[3].numpy()
    return {name: memory[at : at + size] for name, (at, size) in places.items()}


def graphs_of(sizes: tuple[int, ...], template_nodes: int, listed: str) -> tuple[Problem, list[np.ndarray]]:
    """Rings with hubs: the degrees of their nodes are 2 and more, those of the last node 0."""
    rng = np.random.default_rng(0)
    structures, edges, weights = [], [], []
    for first, n in zip(np.cumsum([0, *sizes]), sizes, strict=False):
        C = np.zeros((n, n))
        for step, every in ((1, 1), (4, 5), (9, 11)):
            for i in range(0, n - 1, every):
                j = (i + step) % (n - 1)
                C[i, j] = C[j, i] = rng.uniform(0.5, 1.5) if i != j else 0
        structures.append(C)
        edges.append(np.argwhere(C).T + first)
        weights.append(C[C != 0])
    edge_index, edge_weight = np.concatenate(edges, axis=1), np.concatenate(weights)
    order = {
        "sorted": np.arange(edge_index.shape[1]),
        "by row": np.lexsort((-edge_index[1], edge_index[0])),
        "shuffled": rng.permutation(edge_index.shape[1]),
    }[listed]
    edge_index, edge_weight = edge_index[:, order], edge_weight[order]
    batch = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes))
    given = Problem(
        x=torch.randn(len(batch), 3, dtype=torch.float64),
        batch=batch,
        batch_size=len(sizes),
        node_weights=None,
        edge_index=torch.from_numpy(edge_index),
        edge_weight=torch.from_numpy(edge_weight),
        structure=None,
        template_structure=torch.zeros(2, template_nodes, template_nodes, dtype=torch.float64),
        template_features=torch.randn(2, template_nodes, 3, dtype=torch.float64),
        template_weights=torch.full((2, template_nodes), 1 / template_nodes, dtype=torch.float64),
        alpha=torch.full((2,), 0.5, dtype=torch.float64),
    )
    return given, structures


@pytest.mark.parametrize("listed", ["sorted", "by row", "shuffled"])
@pytest.mark.parametrize(("template_nodes", "group"), [(5, 8), (20, 4), (40, 4)])
def test_rows_are_packed_in_groups_of_about_equal_length(template_nodes: int, group: int, listed: str) -> None:
    sizes = (23, 1, 140, 40, 37)
    given, structures = graphs_of(sizes, template_nodes, listed)
    members = prepared(given)
    row_start, rows, begins = (members[name].view(np.int32) for name in ("row_start", "packed_row", "packed_begin"))
    entries = members["packed"].view(ENTRY)
    for b, C in enumerate(structures):
        n, first = len(C), sum(sizes[:b])
        lengths = (C != 0).sum(1)
        order = np.lexsort((np.arange(n), -lengths))
        np.testing.assert_array_equal(rows[first : first + n], order)
        groups = -(-n // group)
        begin = begins[first + b : first + b + groups + 1]
        widths = lengths[order][::group]
        np.testing.assert_array_equal(begin, [0, *np.cumsum(group * widths)])
        at = row_start[first] + PACKED_ROWS * first
        assert at + begin[-1] <= row_start[first + n] + PACKED_ROWS * (first + n)
        for q, width in enumerate(widths):
            packed = entries[at + begin[q] : at + begin[q + 1]].reshape(width, group)
            for r in range(group):
                row = order[q * group + r] if q * group + r < n else None
                columns = np.flatnonzero(C[row]) if row is not None else np.empty(0, int)
                padding = np.zeros(width - len(columns))
                np.testing.assert_array_equal(packed["row"][:, r], row or 0)
                np.testing.assert_array_equal(packed["col"][:, r], [*columns, *padding])
                weights = C[row, columns] if row is not None else []
                np.testing.assert_array_equal(packed["weight"][:, r], [*weights, *padding])


def test_weights_in_fixed_point_are_rounded_and_the_heaviest_takes_the_rest() -> None:
    sizes = (23, 1, 70)
    given, _ = graphs_of(sizes, 5, "sorted")
    weights = [np.random.default_rng(n).dirichlet(np.ones(n)) for n in sizes]
    supply = prepared(given._replace(node_weights=torch.from_numpy(np.concatenate(weights))))["supply"].view(np.int64)
    for b, h in enumerate(weights):
        fixed = supply[sum(sizes[:b]) : sum(sizes[: b + 1])]
        h = h / sum(h.tolist())
        expected = np.floor(h * (2.0**60 / sum(h.tolist())) + 0.5).astype(np.int64)
        expected[expected.argmax()] += 2**60 - expected.sum()
        np.testing.assert_array_equal(fixed, expected)

"""Structures of templates from their free entries."""

import torch

from tests.ot.problems import random_problem
from tfgw.ot.dispatch import solve
from tfgw.ot.problem import Problem, StructurePattern, expanded

ENTRIES = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])  # of two templates
ABOVE = torch.tensor([[0, 0, 1, 0, 0, 2, 1, 2, 0]]).expand(2, 9)  # at places above and below the diagonal
PLACES = torch.tensor([[1, 3], [2, 6], [5, 7]])


def test_entries_above_the_diagonal_are_mirrored() -> None:
    is_free = torch.tensor([0.0, 1, 1, 1, 0, 1, 1, 1, 0])
    found = StructurePattern(ABOVE, is_free, PLACES).dense(ENTRIES)
    assert found.tolist() == [[[0, 1, 2], [1, 0, 3], [2, 3, 0]], [[0, 4, 5], [4, 0, 6], [5, 6, 0]]]


def test_all_entries_may_be_free() -> None:
    entries = torch.arange(12.0).reshape(3, 4)
    found = StructurePattern(torch.tensor([[3, 1, 0, 2]]).expand(3, 4), None, torch.zeros(4, 2)).dense(entries)
    assert found.tolist() == [[[3, 1], [0, 2]], [[7, 5], [4, 6]], [[11, 9], [8, 10]]]


def test_templates_of_one_node_have_no_entries() -> None:
    pattern = StructurePattern(torch.zeros(5, 1, dtype=torch.int64), torch.zeros(1), torch.zeros(0, 2))
    found = pattern.dense(torch.zeros(5, 0))
    assert (found.shape, int(found.count_nonzero())) == ((5, 1, 1), 0)


def test_one_trade_off_for_all_templates_or_one_for_each() -> None:
    each = torch.tensor([0.1, 0.2, 0.3])
    assert expanded(each, 3) is each
    for single in (torch.tensor(0.5), torch.tensor([0.5]), torch.tensor([[0.5]])):
        found = expanded(single, 3)
        assert found.tolist() == [0.5, 0.5, 0.5]
        assert found.is_contiguous()


def test_a_problem_is_the_same_with_matrices() -> None:
    """Five graphs and two templates, whose entries above the diagonal are free; one trade-off for both."""
    given = random_problem(0, "weighted", templates=2, template_nodes=3)
    is_free = torch.tensor([0.0, 1, 1, 1, 0, 1, 1, 1, 0], dtype=torch.float64)
    sparse = Problem(
        x=given.graphs.x,
        batch=given.graphs.batch,
        batch_size=len(given.sizes),
        node_weights=given.graphs.node_weights,
        edge_index=given.graphs.edge_index,
        edge_weight=given.graphs.edge_weight,
        structure=None,
        template_structure=ENTRIES.double() / 6,
        template_features=given.templates.features,
        template_weights=given.templates.weights,
        alpha=torch.tensor(0.5, dtype=torch.float64),
        pattern=StructurePattern(ABOVE.contiguous(), is_free, PLACES),
    )
    dense = sparse.dense()
    assert dense.pattern is None
    assert (dense.template_structure.shape, dense.alpha.tolist()) == ((2, 3, 3), [0.5, 0.5])
    assert torch.equal(solve(dense, 0).distances, solve(sparse, 0).distances)
    assert float(solve(dense, 0).distances.min()) > 0

"""Problems that native code finds plain need no further look; all others get one, and an error in words."""

import subprocess
import sys
from typing import Any

import pytest
import torch

from tfgw.nn import TFGWPooling
from tfgw.ot import _core
from tfgw.ot.checks import checked
from tfgw.ot.problem import Problem, StructurePattern


def problem(**changes: Any) -> Problem:
    """3 graphs with 20 nodes, 5 features and 41 edges, 7 templates of 11 nodes with 3 free entries."""
    plain = Problem(
        x=torch.randn(20, 5).double(),
        batch=torch.arange(20) // 7,
        batch_size=3,
        node_weights=None,
        edge_index=torch.zeros(2, 41).long(),
        edge_weight=None,
        structure=None,
        template_structure=torch.rand(7, 3).double(),
        template_features=torch.zeros(7, 11, 5).double(),
        template_weights=torch.full((7, 11), 1 / 11).double(),
        alpha=torch.full((7,), 0.5).double(),
        pattern=StructurePattern(torch.zeros(7, 121).long(), None, torch.tensor([[1, 11], [2, 22], [3, 33]])),
    )
    return plain._replace(**changes)


class Marked(torch.Tensor):
    pass


X = torch.randn(20, 5).double()
DENSE = {"pattern": None, "template_structure": torch.zeros(7, 11, 11).double()}
PLAIN: list[dict[str, Any]] = [
    {},
    DENSE,
    {"x": X.float()},
    {"x": torch.randn(5, 20).double().T},
    {"batch": None},
    {"batch_size": None},
    {"max_iter": 2**31 - 1, "n_starts": 1, "tol": 0.0},
    {"alpha": torch.tensor(0.5).double()},
    {"alpha": torch.nn.Parameter(torch.full((7,), 0.5).double())},
    {"edge_index": torch.zeros(2, 0).long()},
    {"edge_weight": torch.ones(41).double()},
    {"edge_index": None, "structure": torch.zeros(138).double()},
    {"pattern": None, "edge_index": None, "template_structure": None},
]
NOT_PLAIN: list[dict[str, Any]] = [
    {"x": X.half()},
    {"x": X.long()},
    {"x": X[None, None]},
    {"x": X[0]},
    {"x": X[:19]},
    {"x": X.to_sparse()},
    {"x": X.to("meta")},
    {"x": X.as_subclass(Marked)},
    {"x": X.numpy()},
    {"batch": torch.zeros(20).int()},
    {"edge_index": torch.zeros(3, 41).long()},
    {"edge_index": None},
    {"edge_weight": torch.ones(40).double()},
    {"structure": torch.zeros(138).double()},
    {"alpha": torch.ones(6).double()},
    {"template_structure": None},
    {"pattern": None},
    DENSE | {"edge_index": None},
    DENSE | {"template_structure": torch.zeros(7, 11, 10).double()},
    {"batch_size": 0},
    {"batch_size": 3.0},
    {"cost": torch.zeros(20, 7, 11).double()},
    {"max_iter": 0},
    {"max_iter": 1.5},
    {"max_iter": True},
    {"max_iter": 2**31},
    {"n_starts": 0},
    {"n_starts": 2**64},
    {"tol": -1e-9},
    {"tol": float("nan")},
    {"tol": 1},
]


@pytest.mark.parametrize("changes", PLAIN)
def test_what_is_plain(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert _core.is_plain(problem(**changes))
    fast = checked(problem(**changes))
    monkeypatch.setattr("tfgw.ot.checks.is_eager", lambda: False)
    assert checked(problem(**changes)).batch_size == fast.batch_size  # nor is anything wrong with it


@pytest.mark.parametrize("changes", NOT_PLAIN)
def test_what_is_not_plain(changes: dict[str, Any]) -> None:
    assert not _core.is_plain(problem(**changes))


ENTRIES = torch.rand(7, 3).double()
INVALID: list[tuple[dict[str, Any], str]] = [
    ({"x": X.long()}, r"^x: expected a floating-point dtype, got torch.int64"),
    ({"x": X[0]}, r"^x: expected shape \(num_nodes, num_features\), got \(5,\)"),
    ({"x": X[:19]}, r"^batch: has 20 entries, but x has 19"),
    ({"x": X[:, :4]}, r"^x: graphs have 4 features per node, template_features has 5"),
    ({"x": X.to("meta")}, r"^batch: is on cpu, but x is on meta"),
    ({"batch": torch.zeros(20).int()}, r"^batch: expected dtype torch.int64, got torch.int32"),
    ({"edge_index": torch.zeros(3, 41).long()}, r"^edge_index: has 3 entries"),
    ({"edge_index": None}, r"^edge_index: missing, but the templates have a structure"),
    ({"edge_weight": torch.ones(40).double()}, r"^edge_weight: has 40 entries, but edge_index has 41"),
    ({"structure": torch.zeros(138).double()}, r"^structure: give either edge_index or structure, not both"),
    ({"alpha": torch.ones(6).double()}, r"^alpha: expected a scalar or one value for each of 7 templates"),
    ({"alpha": torch.ones(7).long()}, r"^alpha: expected a floating-point dtype"),
    ({"alpha": torch.ones(7, device="meta")}, r"^alpha: is on meta, but template_features is on cpu"),
    ({"template_structure": None}, r"^template_structure: missing, but the graphs have a structure"),
    ({"template_structure": ENTRIES.long()}, r"^template_structure: expected a floating-point dtype"),
    ({"template_structure": ENTRIES[0]}, r"^template_structure: expected shape \(num_templates, num_entries\)"),
    ({"template_structure": ENTRIES.to("meta")}, r"^template_structure: is on meta, but template_features is on cpu"),
    (
        DENSE | {"template_structure": torch.zeros(7, 11, 10).double()},
        r"^template_structure: expected shape \(7, 11, 11",
    ),
    (DENSE | {"edge_index": None}, r"^edge_index: missing"),
    ({"template_weights": torch.ones(7, 10).double()}, r"^template_weights: expected shape \(7, 11\)"),
    ({"template_features": torch.zeros(7, 5).double()}, r"^template_features: expected shape"),
    ({"batch_size": 0}, r"^batch_size: must be at least 1, got 0"),
    ({"batch_size": 3.0}, r"^batch_size: expected an integer, got 3.0"),
    ({"max_iter": 0}, r"^max_iter: must be at least 1"),
]


@pytest.mark.parametrize(("changes", "message"), INVALID)
def test_invalid_problems_of_layers_are_told_in_words(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked(problem(**changes))


def test_fields_are_found_by_name() -> None:
    """Native code looks up the place of each; without one, it says which."""
    code = """
import tfgw.ot.problem as module
from typing import NamedTuple
class Problem(NamedTuple):
    x: object
module.Problem = Problem
from tfgw.ot import _core
try:
    _core.is_plain(Problem(None))
except ValueError as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "not in tuple" in ended.stdout or "batch" in ended.stdout


ATTRIBUTES = """
import torch
from tests.ot.test_checks import step
torch.Tensor.__dlpack_c_exchange_api__ = None  # as in versions of PyTorch that have no such table
print(step())
"""


def step() -> str:
    """All values of a training step of a layer."""
    torch.manual_seed(0)
    layer = TFGWPooling(3, 4, 5).double()
    x = torch.randn(6, 3).double().requires_grad_()
    edge_index, batch = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]), torch.tensor([0, 0, 1, 1, 1, 1])
    distances = layer(x, edge_index, batch)
    distances.square().sum().backward()
    found = [distances.detach(), x.grad, *(p.grad for p in layer.parameters())]
    return str([t.tolist() for t in found if t is not None])


def test_versions_of_pytorch_without_a_table_of_functions() -> None:
    ended = subprocess.run([sys.executable, "-c", ATTRIBUTES], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == step()


KEPT = """
from tests.ot.test_checks import step
import torch, tfgw.ot
from tfgw.nn import TFGWPooling
layer = TFGWPooling(1, 2, 3)
kept = layer(torch.ones(2, 1), torch.tensor([[0, 1], [1, 0]]))  # with its graph, until the interpreter ends
"""


def test_nothing_is_reported_when_the_interpreter_ends() -> None:
    ended = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    assert ended.stderr == ""

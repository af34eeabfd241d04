"""The projection of parameters by a kernel, here on a CPU."""

import ctypes
from math import inf

import pytest
import torch
from torch import nn

from tests.nn.cuda.emulated_layers import emulate, kernels
from tests.ot.cuda.emulation import COMPILER
from tfgw.nn import TFGWPooling, project_simplex
from tfgw.nn.constraints import NON_NEGATIVE, UNIT_INTERVAL, Constraint
from tfgw.nn.cuda import launching, projection_kernel
from tfgw.nn.projections import project_
from tfgw.nn.template_layer import project_layers_

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Emulate kernel launches; return the names of the launched kernels."""
    return emulate(monkeypatch)


def test_python_and_the_kernel_agree_on_sizes() -> None:
    assert kernels().projection_threads() == projection_kernel.THREADS
    assert kernels().projection_rows() == projection_kernel.ROWS
    assert kernels().projection_entries() == projection_kernel.ENTRIES
    assert kernels().projection_bytes() == ctypes.sizeof(projection_kernel.Projection) <= 4096


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-15), (torch.float32, 1e-6)])
@pytest.mark.parametrize("scale", [1e-3, 0.3, 30.0])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 27), (19, 33), (2, 100)])
def test_rows_are_projected_onto_the_simplex(
    launched: list[str], dtype: torch.dtype, tolerance: float, scale: float, rows: int, columns: int
) -> None:
    """Entries that PyTorch's operations set to 0 are exactly 0; also far from the simplex."""
    torch.manual_seed(0)
    for offset in (0.0, 100.0):
        given = (offset + scale * torch.randn(rows, columns)).to(dtype)
        found = given.clone()
        project_([Constraint(found)])
        torch.testing.assert_close(found, project_simplex(given), rtol=tolerance * 10, atol=tolerance)
        torch.testing.assert_close(found.double().sum(1), torch.ones(rows).double(), rtol=0, atol=tolerance * 10)
        assert torch.equal(found == 0, project_simplex(given) == 0)
    assert launched == [f"tfgw_projection_{str(dtype).removeprefix('torch.')}"] * 2


def test_ties_and_points_of_the_simplex(launched: list[str]) -> None:
    given = torch.tensor([[3.0, 3, 3, 3], [0, 1, 0, 0], [0.25, 0.5, 0, 0.25], [-inf, 7, -inf, -inf]]).double()
    project_([Constraint(given)])
    expected = [[0.25, 0.25, 0.25, 0.25], [0, 1, 0, 0], [0.25, 0.5, 0, 0.25], [0, 1, 0, 0]]
    torch.testing.assert_close(given, torch.tensor(expected).double(), rtol=0, atol=1e-16)


def test_rows_that_are_on_the_simplex_already(launched: list[str]) -> None:
    """Their zeros equal the threshold, which rounds to either side of them; the search for it ends nevertheless."""
    counts = [[5, 0, 5, 4, 1, 5, 2, 0, 0, 0], [6, 9, 1, 6, 0, 2, 8, 7, 3, 8], [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]]
    row = [0.38994132534363724, 0.0, 0.6100586746563627]
    rows = [torch.tensor(given).double() / sum(given) for given in (*counts, row)]
    torch.manual_seed(3)
    rows += list(project_simplex(torch.randn(400, 7).double())) + list(project_simplex(torch.randn(400, 37).double()))
    found = [given.clone().unsqueeze(0) for given in rows]
    project_([Constraint(one) for one in found])
    for one, given in zip(found, rows, strict=True):
        torch.testing.assert_close(one[0], given, rtol=0, atol=1e-15)
    assert set(launched) == {"tfgw_projection_float64"}


def test_a_row_with_an_entry_that_is_no_number_has_no_others(launched: list[str]) -> None:
    given = torch.tensor([[0.3, torch.nan, 0.9], [0.2, 0.3, 0.5]]).double()
    other = torch.tensor([0.5, torch.nan, 2.0]).double()
    project_([Constraint(given), Constraint(other, UNIT_INTERVAL)])
    assert given[0].isnan().all()
    torch.testing.assert_close(given[1], torch.tensor([0.2, 0.3, 0.5]).double())
    torch.testing.assert_close(other, torch.tensor([0.5, torch.nan, 1.0]).double(), equal_nan=True)


def test_more_tensors_than_fit_in_a_launch(launched: list[str]) -> None:
    """Of all kinds and sizes: one entry, none, and more than a block has."""
    torch.manual_seed(1)
    sizes = [(), (0, 5), (2300,), (9, 1024), (1,)]
    given = [3 * torch.randn(sizes[number % 5]).double() for number in range(170)]
    intervals = [UNIT_INTERVAL, NON_NEGATIVE, (-2.0, 0.5)]
    constraints = [Constraint(tensor.clone(), intervals[number % 3]) for number, tensor in enumerate(given)]
    rows = [torch.randn(23, 6).double() for _ in range(3)]
    constraints[5:5] = [Constraint(tensor.clone()) for tensor in rows]
    project_(constraints)
    found = [one.tensor for one in constraints]
    torch.testing.assert_close(found[5:8], [project_simplex(tensor) for tensor in rows])
    for number, (before, after) in enumerate(zip(given, found[:5] + found[8:], strict=True)):
        assert torch.equal(after, before.clamp(*intervals[number % 3]))
    assert launched == ["tfgw_projection_float64"] * 2  # 136 of the tensors have entries


def random_layers() -> list[TFGWPooling]:
    torch.manual_seed(2)
    layers = [
        *(TFGWPooling(3, templates, 5).double() for templates in (2, 4)),
        TFGWPooling(3, 2, 7, alpha_per_template=True, structure="shortest_path").double(),
        TFGWPooling(3, 2, 5, learn_weights=False, alpha=0.5).double(),
    ]
    for parameter in (p for layer in layers for p in layer.parameters()):
        nn.init.normal_(parameter)
    return layers


def test_all_layers_are_projected_by_one_kernel(launched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    layers, expected = random_layers(), random_layers()
    project_layers_(layers)
    assert launched == ["tfgw_projection_float64"]
    monkeypatch.setattr(launching, "is_supported", lambda x: False)
    project_layers_(expected)
    assert len(launched) == 1
    for one, other in zip(layers, expected, strict=True):
        torch.testing.assert_close(one.state_dict(), other.state_dict(), rtol=1e-14, atol=1e-16)


def test_a_parameter_of_two_layers_is_projected_once(launched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by two blocks at the same time."""
    counts: list[int] = []
    emulated = launching.launch
    monkeypatch.setattr(launching, "launch", lambda *given: (counts.append(given[3].count), emulated(*given)))
    shared = torch.tensor([[0.4, 0.9, -0.1]])
    project_([Constraint(shared), Constraint(shared.view(1, 3))])
    torch.testing.assert_close(shared, torch.tensor([[0.25, 0.75, 0.0]]))
    assert counts == [1]


def test_a_graph_notices_that_its_tensors_are_projected(launched: list[str]) -> None:
    """As after every operation in place."""
    parameter = nn.Parameter(torch.rand(2, 3))
    loss = parameter.square().sum()
    project_([Constraint(parameter)])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_tensors_that_are_not_contiguous_have_no_kernel(launched: list[str]) -> None:
    given = torch.randn(6, 4).double()
    found = given.T.contiguous().T
    project_([Constraint(found)])
    assert torch.equal(found, project_simplex(given))
    assert not launched

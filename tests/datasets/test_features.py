from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tfgw.datasets import load

WriteTables = Callable[..., Path]

ATTRIBUTES = "".join(f"{i}.5, {-i}\n" for i in range(9))


def test_labels_are_one_hot_over_the_values_that_occur(tiny: dict[str, str], write_folder: WriteTables) -> None:
    dataset = load(write_folder(tiny), features="labels")
    torch.testing.assert_close(dataset[0].x, torch.tensor([[0.0, 1, 0], [0, 1, 0], [1, 0, 0]]))
    torch.testing.assert_close(dataset[1].x, torch.tensor([[1.0, 0, 0], [0, 0, 1]]))


def test_label_columns_stand_side_by_side(tiny: dict[str, str], write_folder: WriteTables) -> None:
    tiny["node_labels"] = "".join(f"{i % 2}, {i % 3}\n" for i in range(9))
    assert load(write_folder(tiny)).x.sum(dim=0).tolist() == [5, 4, 3, 3, 3]


def test_attributes_come_without_the_labels(tiny: dict[str, str], write_folder: WriteTables) -> None:
    dataset = load(write_folder(tiny | {"node_attributes": ATTRIBUTES}), features="attributes")
    torch.testing.assert_close(dataset[1].x, torch.tensor([[3.5, -3], [4.5, -4]]))


def test_degree(tiny: dict[str, str], write_folder: WriteTables) -> None:
    folder = write_folder(tiny)
    assert load(folder, features="degree").x.argmax(dim=1).tolist() == [1, 2, 1, 1, 1, 2, 2, 2, 0]
    assert load(folder, features="degree").num_features == 3
    assert load(folder, features="degree", max_degree=1).x.argmax(dim=1).tolist() == [1] * 8 + [0]
    assert load(folder, features="degree_scalar").x.tolist() == [[1], [2], [1], [1], [1], [2], [2], [2], [0]]


def test_constant(tiny: dict[str, str], write_folder: WriteTables) -> None:
    assert load(write_folder(tiny), features="constant").x.tolist() == [[1.0]] * 9


def test_auto_takes_attributes_and_labels_or_the_degree(tiny: dict[str, str], write_zip: WriteTables) -> None:
    def check_that_auto_is(kind: str, tables: dict[str, str]) -> None:
        assert load(write_zip(tables)).x.equal(load(write_zip(tables), features=kind).x)
        assert load(write_zip(tables)).encoding.features == kind

    check_that_auto_is("both", tiny | {"node_attributes": ATTRIBUTES})
    check_that_auto_is("labels", tiny)
    del tiny["node_labels"]
    check_that_auto_is("attributes", tiny | {"node_attributes": ATTRIBUTES})
    check_that_auto_is("degree", tiny)


def test_default_type_of_torch_is_used(tiny: dict[str, str], write_zip: WriteTables) -> None:
    path = write_zip(tiny | {"node_attributes": ATTRIBUTES})
    torch.set_default_dtype(torch.float64)
    try:
        types = {load(path, features=kind).x.dtype for kind in ("labels", "attributes", "degree", "constant")}
    finally:
        torch.set_default_dtype(torch.float32)
    assert types == {torch.float64}


@pytest.mark.parametrize("kind", ["labels", "attributes"])
def test_absent_features_are_an_error(tiny: dict[str, str], write_folder: WriteTables, kind: str) -> None:
    del tiny["node_labels"]
    with pytest.raises(ValueError, match=f"features='{kind}': the graphs have no node {kind}"):
        load(write_folder(tiny), features=kind)


def test_unknown_kind_is_an_error(tiny: dict[str, str], write_folder: WriteTables) -> None:
    with pytest.raises(ValueError, match="features='colour': expected one of 'auto', 'labels'"):
        load(write_folder(tiny), features="colour")
    with pytest.raises(ValueError, match="max_degree=0: must be at least 1"):
        load(write_folder(tiny), features="degree", max_degree=0)


@pytest.mark.parametrize(
    ("table", "lines", "message"),
    [
        ("node_attributes", 9, r"TINY: attributes of node 3: 1e\+300 is too large for torch.float32"),
        ("edge_attributes", 14, r"TINY: attributes of edge \d+: 1e\+300 is too large"),
        ("graph_attributes", 3, r"TINY: target of graph 2: 1e\+300 is too large"),
    ],
)
def test_numbers_that_single_precision_cannot_hold_are_refused(
    tiny: dict[str, str], write_folder: WriteTables, table: str, lines: int, message: str
) -> None:
    """They would become infinite."""
    del tiny["graph_labels"]
    tiny |= {"graph_attributes": "0.5\n1.5\n2.5\n"}
    rows = ["1.5\n"] * lines
    rows[min(3, lines - 1)] = "1e300\n"
    with pytest.raises(ValueError, match=message):
        load(write_folder(tiny | {table: "".join(rows)}))

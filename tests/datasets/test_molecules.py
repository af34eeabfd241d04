"""Molecules as graphs: known atoms and bonds, tables with rows that cannot be read, targets of all kinds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.datasets.molecule_files import molecules, write_csv, write_parquet
from tfgw.datasets import CanonicalOrder, GraphDataset, TableColumns, from_smiles, load
from tfgw.datasets.molecules import MAX_ATOMS, parse_smiles

pytest.importorskip("rdkit")

COLUMNS = TableColumns(smiles="SMILES", target="aromatic", identifier="name")


@pytest.fixture(params=["csv", "parquet"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[list[dict[str, Any]]], Path]:
    """Write rows as a table of either kind."""
    if request.param == "parquet":
        pytest.importorskip("pyarrow")
    writer = {"csv": write_csv, "parquet": write_parquet}[request.param]
    return lambda rows: writer(tmp_path / f"mols.{request.param}", rows)


def with_(rows: list[dict[str, Any]], number: int, **values: Any) -> list[dict[str, Any]]:
    return [row | values if position == number else row for position, row in enumerate(rows)]


def test_atoms_and_bonds() -> None:
    dataset = from_smiles(["CC(=O)N", "c1ccccc1", "[Na+].[Cl-]"], y=["a", "b", "a"], identifiers=[7, 8, 9])
    assert dataset.encoding.vocabulary == (("C", "Cl", "N", "Na", "O"),)
    assert dataset.encoding.edges.vocabulary == (("aromatic", "double", "single"),)
    assert [graph.num_nodes for graph in dataset] == [4, 6, 2]
    assert dataset[0].x.argmax(1).tolist() == [0, 0, 4, 2]
    assert dataset[0].edge_index.tolist() == [[0, 1, 1, 1, 2, 3], [1, 0, 2, 3, 1, 1]]
    assert dataset[0].edge_attr.argmax(1).tolist() == [2, 2, 1, 2, 1, 2]
    assert dataset[1].edge_attr[:, 0].tolist() == [1.0] * 12
    assert dataset[2].num_edges == 0
    assert (dataset.classes, dataset.y.tolist(), dataset.identifiers) == (("a", "b"), [0, 1, 0], [7, 8, 9])
    assert dataset[[2, 0]].identifiers == [9, 7]


def test_other_smiles_of_a_molecule_give_the_same_graph() -> None:
    from rdkit import Chem

    molecule = Chem.MolFromSmiles("CC(=O)Nc1ccc(O)cc1Br")
    smiles = [Chem.MolToSmiles(molecule, doRandom=True) for _ in range(20)]
    assert len(set(smiles)) > 5
    first, *others = CanonicalOrder().of_dataset(from_smiles(smiles))
    for other in others:
        assert other.x.equal(first.x)
        assert other.edge_index.equal(first.edge_index)


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("", "no SMILES"),
        (None, "no SMILES"),
        (5, "expected text, found int"),
        ("CC(", "not valid SMILES: 'CC\\('"),
        ("C1CC", "not valid SMILES"),
        ("C(C)(C)(C)(C)C", "not a valid molecule, Explicit valence for atom # 0 C, 5"),
        ("c1cccc1", "not a valid molecule, Can't kekulize"),
        ("CC ethane", "more than one molecule"),
        ("C\0C", "more than one molecule"),
        ("C" * (MAX_ATOMS + 1), "1,001 atoms, more than the maximum of 1,000"),
        ("C" * 100_000, "100,000 characters, too many"),
    ],
)
def test_what_is_no_molecule(smiles: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_smiles(smiles)
    with pytest.raises(ValueError, match=f"molecule 1: {reason}"):
        from_smiles(["CC", smiles])


def test_a_table(write: Callable[..., Path]) -> None:
    rows = molecules(12)
    dataset = load(write(rows), columns=COLUMNS)
    expected = from_smiles([row["SMILES"] for row in rows], y=[row["aromatic"] for row in rows])
    assert dataset.name == "mols"
    assert dataset.identifiers == [row["name"] for row in rows]
    assert dataset.classes == (0, 1)
    for key in ("x", "edge_index", "edge_attr", "y"):
        assert dataset.stacked[key].equal(expected.stacked[key]), key


def test_rows_that_cannot_be_read_are_counted_and_named(write: Callable[..., Path]) -> None:
    rows = molecules(12)
    for number, smiles in ((2, "C(C)(C)(C)(C)C"), (5, None), (6, "rubbish"), (9, "C" * 100_000)):
        rows = with_(rows, number, SMILES=smiles)
    with pytest.warns(
        UserWarning, match="4 of 12 rows cannot be read and are skipped: row 2: not a valid molecule"
    ) as said:
        dataset = load(write(rows), columns=COLUMNS)
    assert "row 5: no SMILES; row 6: not valid SMILES: 'rubbish'; ..." in str(said[0].message)
    assert dataset.identifiers == [row["name"] for i, row in enumerate(rows) if i not in (2, 5, 6, 9)]
    with pytest.raises(ValueError, match="no molecules; 3 of 3 rows cannot be read"):
        load(write([row | {"SMILES": "?"} for row in rows[:3]]), columns=COLUMNS)


def test_rows_without_a_target(write: Callable[..., Path]) -> None:
    path = write(with_(molecules(6), 4, aromatic=None))
    with pytest.warns(UserWarning, match="1 of 6 rows has no target and is skipped"):
        dataset = load(path, columns=COLUMNS)
    assert len(dataset) == 5
    others = load(path, columns=COLUMNS, encoding=dataset.encoding)
    assert (others.y < 0).tolist() == [False] * 4 + [True, False]
    values = TableColumns(smiles="SMILES", target="aromatic", values=True)
    assert load(path, columns=values, encoding=dataset.encoding).y.isnan().tolist() == [False] * 4 + [True, False]
    bare = TableColumns(smiles="SMILES", target="not there", identifier="name")
    assert load(path, columns=bare, encoding=dataset.encoding).y is None
    with pytest.raises(ValueError, match="no column 'not there'; it has 'name', 'SMILES'"):
        load(path, columns=bare)


def targets(write: Callable[..., Path], y: list[Any], **changes: Any) -> GraphDataset:
    rows = [{"SMILES": "CCO", "y": value} for value in y]
    return load(write(rows), columns=TableColumns(smiles="SMILES", target="y", **changes))


def test_kinds_of_targets(write: Callable[..., Path]) -> None:
    assert targets(write, [3, 1, 3]).classes == (1, 3)
    assert targets(write, [3.0, 1.0, 3.0]).classes == (1, 3)
    assert targets(write, ["no", "yes", "no"]).classes == ("no", "yes")
    assert targets(write, [0.5, 1.0, -2.0]).y.tolist() == [0.5, 1.0, -2.0]
    assert targets(write, [3, 1, 3], values=True).y.tolist() == [3.0, 1.0, 3.0]
    found = targets(write, [3, 1, 3])
    assert found.identifiers == [0, 1, 2]
    with pytest.raises(ValueError, match=r"column 'y': row \d is 1e\+30, not a finite number of at most 64 bits"):
        targets(write, [1e30, 2.0])


def test_mixed_targets_are_an_error(tmp_path: Path) -> None:
    rows = [{"SMILES": "CCO", "y": value} for value in (1, 0, "yes", 1)]
    columns = TableColumns(smiles="SMILES", target="y")
    with pytest.raises(ValueError, match="column 'y': row 2 is text and row 0 is a number; targets must not mix both"):
        load(write_csv(tmp_path / "mixed.csv", rows), columns=columns)
    rows[2]["y"] = "inf"
    with pytest.raises(ValueError, match="row 2 is inf, not a finite number"):
        load(write_csv(tmp_path / "mixed.csv", rows), columns=columns)


def test_ten_thousand_classes(tmp_path: Path) -> None:
    rows = [{"SMILES": "C", "y": f"class {number:05}"} for number in range(10_000)]
    dataset = load(write_csv(tmp_path / "many.csv", rows), columns=TableColumns(smiles="SMILES", target="y"))
    assert dataset.num_classes == 10_000
    np.testing.assert_array_equal(dataset.y, torch.arange(10_000))

"""Records: found again, whole, once."""

import os
from pathlib import Path

import pytest

from tests.paper.small import cell
from tfgw.paper.cells import Cell
from tfgw.paper.records import Record, Records


def record(cell: Cell, status: str = "done") -> Record:
    return {"cell": cell.as_dict(), "status": status, "run": {"seconds": 1.5}}


def test_equal_cells_have_equal_keys_and_others_not() -> None:
    same = cell(configuration={"width": 3, "epochs": 2}).key
    assert cell(configuration={"epochs": 2, "width": 3}).key == same
    changes = [
        {"dataset": "NCI1"},
        {"model": "a.b:D"},
        {"configuration": {"width": 3, "epochs": 3}},
        {"protocol": "paper"},
        {"split_seed": 1},
        {"fold": 1},
        {"seed": 1},
        {"grouped": True},
        {"splits": "0a"},
        {"collect": "embedding"},
    ]
    keys = {cell(**({"configuration": {"width": 3, "epochs": 2}} | change)).key for change in changes}
    assert len(keys | {same}) == len(changes) + 1


def test_packed_records_are_the_same(tmp_path: Path) -> None:
    records = Records(tmp_path)
    cells = [cell(dataset=dataset, fold=fold) for dataset in ("MUTAG", "NCI1") for fold in range(3)]
    for one in cells:
        records.put(record(one))
    before = list(records)
    assert records.pack() == len(before) == 6
    assert list(Records(tmp_path)) == before
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["C.jsonl", "C.jsonl"]
    records.put(record(cells[4], "failed"))  # a newer record stands
    assert Records(tmp_path).get(cells[4])["status"] == "failed"
    assert len(list(Records(tmp_path))) == 6
    assert records.pack() == 6
    assert Records(tmp_path).get(cells[4])["status"] == "failed"
    assert Records(tmp_path).get(cell(fold=7)) is None


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records(tmp_path)
    records.put(record(cell()))

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "rename", fail)
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        records.put(record(cell(), "failed"))
    assert Records(tmp_path).get(cell())["status"] == "done"
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_records_of_another_machine(tmp_path: Path) -> None:
    here, there = Records(tmp_path / "here"), Records(tmp_path / "there")
    for fold, status in enumerate(["done", "failed"]):
        here.put(record(cell(fold=fold), status) | {"where": "here"})
    for fold in range(3):
        there.put(record(cell(fold=fold)) | {"where": "there"})
    there.pack()
    here.merge_from(Records(tmp_path / "there"))
    assert [here.get(cell(fold=fold))["where"] for fold in range(3)] == ["here", "there", "there"]

"""Files of answers: three formats, written in chunks, never over a file that is there."""

import csv
import json
from pathlib import Path

import pytest

from tfgw.cli.output import Columns, check_output, open_rows

COLUMNS: Columns = {"graph": int, "id": str, "value": float, "label": int}
CHUNKS = [[(0, "a", 0.5, None), (1, None, 1 / 3, None)], [(2, 'c,"d"', -1e-300, 7)]]
ROWS = [row for chunk in CHUNKS for row in chunk]


def written(path: Path) -> Path:
    with open_rows(path, COLUMNS) as file:
        for chunk in CHUNKS:
            file.write(chunk)
    return path


def test_csv(tmp_path: Path) -> None:
    with written(tmp_path / "rows.csv").open(newline="") as stream:
        header, *rows = csv.reader(stream)
    assert header == list(COLUMNS)
    assert rows == [["" if value is None else str(value) for value in row] for row in ROWS]


def test_json_lines(tmp_path: Path) -> None:
    lines = written(tmp_path / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]


def test_parquet_keeps_types_even_where_the_first_chunk_does_not_show_them(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    found = parquet.read_table(written(tmp_path / "rows.parquet"))
    assert [str(kind) for kind in found.schema.types] == ["int64", "string", "double", "int64"]
    assert found.to_pylist() == [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_file_that_is_there_stays(tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"rows.{suffix}"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=f"--output .*rows.{suffix}: is there already"), open_rows(path, COLUMNS):
        pass
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["rows", "rows.txt", "rows.csv.gz"])
def test_an_unknown_format_is_an_error_before_any_work(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"must end in \.csv, \.jsonl, \.parquet"):
        check_output(tmp_path / name)

"""Files of answers: three formats, written in chunks, never over a file that is there, continued where they were."""

import csv
import json
from pathlib import Path

import pytest

from tfgw.cli import resumable_output
from tfgw.cli.resumable_output import check_output, open_output

TYPES = {"graph": int, "id": str, "value": float, "label": int}
CHUNKS = [[(0, "a", 0.5, None), (1, None, 1 / 3, None)], [(2, 'c,"d"', -1e-300, 7)], [(3, "é\n", 2.0, 8)]]
ROWS = [row for chunk in CHUNKS for row in chunk]
FORMATS = ["csv", "jsonl", "parquet"]


def columns(chunk: list[tuple[object, ...]]) -> dict[str, list[object]]:
    return {name: list(values) for name, values in zip(TYPES, zip(*chunk, strict=True), strict=True)}


def written(path: Path) -> Path:
    with open_output(path, {"model": 1}, types=TYPES) as file:
        for chunk in CHUNKS:
            file.write(columns(chunk), {})
    return path


def write_and_fail(path: Path, error: BaseException, *, committed: int = 0) -> None:
    """Write two chunks, of which so many are committed; then an error ends it."""
    with open_output(path, {"model": 1}, types=TYPES) as file:
        for number, chunk in enumerate(CHUNKS[:2], start=1):
            file.write(columns(chunk), {"chunks": number})
            if number == committed:
                file.commit()
        raise error


def test_csv(tmp_path: Path) -> None:
    with written(tmp_path / "rows.csv").open(newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    assert header == list(TYPES)
    assert rows == [["" if value is None else str(value) for value in row] for row in ROWS]


def test_json_lines(tmp_path: Path) -> None:
    lines = written(tmp_path / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [dict(zip(TYPES, row, strict=True)) for row in ROWS]


def test_parquet_keeps_types_even_where_the_first_chunk_does_not_show_them(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    found = parquet.read_table(written(tmp_path / "rows.parquet"))
    assert [str(kind) for kind in found.schema.types] == ["int64", "string", "double", "int64"]
    assert found.to_pylist() == [dict(zip(TYPES, row, strict=True)) for row in ROWS]


def test_parquet_refuses_what_has_another_type(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with open_output(tmp_path / "rows.parquet", {}) as file:
        file.write({"graph": [0], "label": [1]}, {})
        with pytest.raises(ValueError, match="the values of a column have different types"):
            file.write({"graph": [1], "label": ["a"]}, {})


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_that_is_there_stays(tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"rows.{suffix}"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=f"--output .*rows.{suffix}: already exists"), open_output(path, {}):
        pass
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["rows", "rows.txt", "rows.csv.gz"])
def test_an_unknown_format_is_an_error_before_any_work(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"must end in one of \.csv, \.jsonl, \.parquet"):
        check_output(tmp_path / name)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("committed", [0, 1, 2])
def test_an_interrupted_file_is_continued(
    tmp_path: Path, suffix: str, committed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that were not committed are cut off, half a row included, and written again."""
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(resumable_output, "_COMMIT_SECONDS", 1e9)
    path = tmp_path / f"rows.{suffix}"
    with pytest.raises(KeyboardInterrupt):
        write_and_fail(path, KeyboardInterrupt(), committed=committed)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(partial.read_bytes() + b"half a r")
    assert not path.exists()
    with open_output(path, {"model": 1}, types=TYPES) as file:
        assert file.graphs == sum(map(len, CHUNKS[:committed]))
        assert file.notes == ({"chunks": committed} if committed else {})
        for chunk in CHUNKS[committed:]:
            file.write(columns(chunk), {})
    assert path.read_bytes() == written(tmp_path / f"whole.{suffix}").read_bytes()
    assert {file.name for file in tmp_path.iterdir()} == {path.name, f"whole.{suffix}"}


def test_another_command_does_not_continue(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with pytest.raises(OSError, match="disk"):
        write_and_fail(path, OSError("disk full"))
    message = "another model, other graphs or other options"
    with pytest.raises(FileExistsError, match=message), open_output(path, {"model": 2}):
        pass


@pytest.mark.parametrize("damage", ["{", '{"bytes": 10000}', "[]"])
def test_a_damaged_state_means_to_begin_again(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "rows.csv"
    with pytest.raises(OSError, match="disk"):
        write_and_fail(path, OSError("disk full"), committed=1)
    (tmp_path / "rows.csv.state").write_text(damage)
    assert written(path).read_bytes() == written(tmp_path / "whole.csv").read_bytes()


def test_an_error_in_the_input_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 7"):
        write_and_fail(tmp_path / "rows.csv", ValueError("line 7"), committed=1)
    assert {path.name for path in tmp_path.iterdir()} <= {"rows.csv.lock"}


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with open_output(path, {}) as file:
        file.write({"graph": [0]}, {})
        with pytest.raises(FileExistsError, match="another process is writing this file"), open_output(path, {}):
            pass

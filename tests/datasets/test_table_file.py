"""CSV and Parquet files that are not as they should be: one error that names the file."""

from pathlib import Path

import pytest

from tfgw.datasets.table_file import column_names, read_rows


def rows(path: Path, *names: str) -> list[tuple[object, ...]]:
    return list(read_rows(path, names))


def test_fields_are_stripped_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffa, b ,c\r\n 1 ,"x, ""y""",\r\n\r\n2,"two\nlines",z\r\n'.encode())
    assert column_names(path) == ["a", "b", "c"]
    assert rows(path, "b", "a", "c") == [('x, "y"', "1", None), ("two\nlines", "2", "z")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"a,b\n1,2\n3\n", "row 1: has 1 fields, but the header has 2"),
        (b"a,b\n1,2,3\n", "row 0: has 3 fields, but the header has 2"),
        (b"a,a\n1,2\n", "several columns 'a'"),
        (b"x,y\n1,2\n", "no column 'a'; it has 'x', 'y'"),
        (b"a,b\n\xff\xfe,2\n", "not UTF-8 text"),
        (b'a,b\n"1,2\n', "not a readable CSV file"),
        (b"a,b\n" + b"1" * (2**24 + 1) + b",2\n", "not a readable CSV file"),
    ],
)
def test_malformed_csv(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"t.csv.*{message}"):
        rows(path, "a")


def test_malformed_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    with pytest.raises(FileNotFoundError, match="no such file"):
        rows(path, "a")
    path.write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(ValueError, match=r"t\.parquet: not a readable Parquet file"):
        rows(path, "a")

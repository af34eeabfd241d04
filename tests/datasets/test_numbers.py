import contextlib
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgw.datasets import numbers
from tfgw.datasets.numbers import read_blocks, read_table


def table(text: str, *, dtype: type = np.int64, columns: int | None = None) -> np.ndarray:
    return read_table(io.BytesIO(text.encode()), dtype=dtype, columns=columns, label="file")


@pytest.mark.parametrize("text", ["1, 2\n-3,4\n", "1,2\r\n -3 , 4\r\n", "1, 2\n-3, 4", "1, 2\n-3, 4\n\n \n"])
def test_layout_does_not_matter(text: str) -> None:
    np.testing.assert_array_equal(table(text), [[1, 2], [-3, 4]])


def test_floats() -> None:
    np.testing.assert_array_equal(table(" 1.5,  2e3, -0.25\n", dtype=np.float64), [[1.5, 2000.0, -0.25]])


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("1, 2\n3, x\n", 2, "3, x"),
        ("1, 2\n3\n4, 5\n", 2, "3"),
        ("1, 2\n3, 4\n5, 6, 7\n", 3, "5, 6, 7"),
        ("1, 2\n\n3, 4\n", 2, ""),
        ("1, 2\n3, 4.5\n", 2, "3, 4.5"),
        ("1 2\n", 1, "1 2"),
        ("1, 2, 3\n4\n", 1, "1, 2, 3"),
        ("1, \n2, 3\n", 1, "1, "),
    ],
)
def test_bad_line_is_named(text: str, line: int, found: str) -> None:
    message = f"file, line {line}: expected 2 comma-separated integers, found {found!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        table(text, columns=2)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
def test_non_finite_number_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="file, line 2: expected one finite number, found"):
        table(f"1.0\n{value}\n", dtype=np.float64)


@pytest.mark.parametrize("text", ["", "\n", " \n\n"])
def test_empty_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="file: the file is empty"):
        table(text)


def test_small_blocks_give_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "BLOCK_BYTES", 16)
    expected = np.arange(34).reshape(17, 2)
    text = "".join(f"{a}, {b}\n" for a, b in expected) + "\n\n"
    blocks = list(read_blocks(io.BytesIO(text.encode()), dtype=np.int64, label="file"))
    assert len(blocks) > 5
    np.testing.assert_array_equal(np.concatenate([block.values for block in blocks]), expected)
    assert [block.first_line - 1 for block in blocks] == [block.values[0, 0] // 2 for block in blocks]


def test_line_number_counts_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "BLOCK_BYTES", 16)
    with pytest.raises(ValueError, match="file, line 14: expected one integer, found 'oops'"):
        table("123\n" * 13 + "oops\n" + "123\n" * 5)


def test_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "BLOCK_BYTES", 16)
    with pytest.raises(ValueError, match="file: a line is longer than 16 bytes"):
        table("1" * 100)


@given(st.text(alphabet="01-., \n\rxe_", max_size=40))
def test_any_text_is_a_table_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert table(text, columns=2).shape[1] == 2

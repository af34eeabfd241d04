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
        ("1 2,\n3, 4\n", 1, "1 2,"),
        ("1, 2\n3, 4 5\n,\n", 2, "3, 4 5"),
        ("1, 2\n,3 4\r\n", 2, ",3 4"),
        ("1, 2_0\n", 1, "1, 2_0"),
        ("1, -\n2, 3\n", 1, "1, -"),
        ("1, 2\n+, 3\n", 2, "+, 3"),
        ("1, 2\r3\n", 1, "1, 2\r3"),
    ],
)
def test_bad_line_is_named(text: str, line: int, found: str) -> None:
    message = f"file, line {line}: expected 2 comma-separated integers, found {found!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        table(text, columns=2)


@pytest.mark.parametrize("digits", [str(2**63), str(-(2**63) - 1), str(2**64 + 5), "-" + "9" * 5000])
def test_integer_beyond_64_bits_is_refused(digits: str) -> None:
    with pytest.raises(ValueError, match=r"file, line 2: (integers have at most 64 bits|expected one integer), found"):
        table(f"1\n{digits}\n3\n")


def test_integers_of_64_bits_are_exact() -> None:
    values = [2**63 - 1, -(2**63), 2**62 + 1, 10**18 + 3, -(10**18) - 3, 1]
    np.testing.assert_array_equal(table("".join(f"{value}\n" for value in values))[:, 0], values)


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


@given(st.lists(st.sampled_from(["1", "-2", "12", " ", ",", "\n", "\r\n", "\t"]), max_size=30).map("".join))
def test_a_table_is_what_its_lines_say(text: str) -> None:
    """No number moves into another line or field, however many there are."""
    with contextlib.suppress(ValueError):
        lines = [line.split(",") for line in text.strip().split("\n")]
        np.testing.assert_array_equal(table(text, columns=2), [[int(field) for field in line] for line in lines])


@given(st.text(alphabet="01-., \n\rxe_", max_size=40))
def test_any_text_is_a_table_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert table(text, columns=2).shape[1] == 2

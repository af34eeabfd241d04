"""Structs and memory of the kernels, and the driver's calls: nothing here needs a GPU or a compiler."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tfgw.ot.cuda import driver
from tfgw.ot.cuda.layout import PROBLEM, bits, layout

COUNTS = {"graphs": 3, "nodes": 20, "features": 5, "edges": 41, "templates": 7, "columns": 11, "padded": 16}
INTEGERS = {
    "ptr": 4,
    "graph_of": 20,
    "order": 3,
    "row_start": 21,
    "column": 41,
    "live_count": 7,
    "live": 7 * 16,
    "queue": 4,
}
DOUBLES = {"dense_at": 4, "value": 41, "h": 20, "supply": 20, "constant": 3, "t_h": 7 * 16, "C": 7 * 16 * 16,
           "ft": 7 * 5 * 16, "t_square": 7 * 11, "t_constant": 7}  # fmt: skip


def test_prepared_members_have_room_and_do_not_overlap() -> None:
    found = layout(**COUNTS)
    assert {name: found.words[PROBLEM.at[name]] for name in COUNTS} == COUNTS
    base = 1 << 40
    words = found.words_at(base)
    prepared = np.flatnonzero(words >= base)
    names = [PROBLEM.members[place] for place in prepared]
    assert names == [name for name in PROBLEM.members[PROBLEM.at["ptr"] : PROBLEM.at["queue"] + 1] if name != "padded"]
    ends = np.append(np.sort(words[prepared]), base + found.size)
    room = {name: int(ends[ends > words[PROBLEM.at[name]]][0] - words[PROBLEM.at[name]]) for name in names}
    assert all(room[name] >= 4 * entries for name, entries in INTEGERS.items())
    assert all(room[name] >= 8 * entries for name, entries in DOUBLES.items())
    assert all(size % 8 == 0 for size in room.values())


def test_a_layout_is_kept_and_not_changed_by_its_use() -> None:
    found = layout(**COUNTS)
    before = found.words.copy()
    found.words_at(1 << 40)[:] = -1
    assert layout(**COUNTS) is found
    assert np.array_equal(found.words, before)
    assert np.array_equal(found.words_at(64) - found.words_at(0) == 64, found.words_at(1 << 40) >= 1 << 40)


@pytest.mark.parametrize("number", [0.0, 1e-9, -3.5])
def test_numbers_as_words(number: float) -> None:
    assert np.int64(bits(number)).view(np.float64) == number


class Driver(SimpleNamespace):
    """Answers launches with the given errors, one after the other."""

    def __init__(self, *answers: int) -> None:
        super().__init__(answers=list(answers), calls=[])

    def cuLaunchKernel(self, *arguments: object) -> int:
        self.calls.append(arguments)
        return self.answers.pop(0)

    def cuGetErrorName(self, error: int, name: object) -> int:
        ctypes.cast(name, ctypes.POINTER(ctypes.c_char_p))[0] = b"CUDA_ERROR_INVALID_VALUE"
        return 0


def launch_with(answers: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> Driver:
    fake = Driver(*answers)
    monkeypatch.setattr(driver, "_driver", lambda: fake)
    driver.launch("tfgw_solve", 12, 34, 56, 78, b"\0one", b"\0two")
    return fake


def test_a_launch_passes_the_addresses_of_its_structs(monkeypatch: pytest.MonkeyPatch) -> None:
    ((kernel, *shape, shared, stream, arguments, extra),) = launch_with((0,), monkeypatch).calls
    assert (kernel, shape, shared, stream, extra) == (12, [34, 1, 1, 56, 1, 1], 0, 78, None)
    pointers = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_void_p))
    assert [ctypes.string_at(pointers[i], 4) for i in range(2)] == [b"\0one", b"\0two"]


def test_a_launch_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="tfgw: launch of tfgw_solve failed: CUDA_ERROR_INVALID_VALUE"):
        launch_with((1,), monkeypatch)


def test_a_thread_without_a_context_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: asked.append(True))
    assert len(launch_with((201, 0), monkeypatch).calls) == 2
    assert asked == [True]

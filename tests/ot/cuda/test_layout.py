"""Structs and memory of the kernels, and the driver's calls: nothing here needs a GPU or a compiler."""

import ctypes
from struct import unpack_from
from types import SimpleNamespace

import pytest
import torch

from tfgw.ot.cuda import driver
from tfgw.ot.cuda.gpu import Check
from tfgw.ot.cuda.layout import PREPARED, PROBLEM, PROBLEM_HEAD, PROBLEM_TAIL, prepared_addresses, prepared_offsets

COUNTS = {"graphs": 3, "nodes": 20, "features": 5, "edges": 41, "templates": 7, "columns": 11, "padded": 16}
INTEGERS = {"ptr": 4, "graph_of": 20, "order": 3, "row_start": 21, "column": 41, "packed_row": 20, "packed_begin": 24,
            "live_count": 7, "live": 7 * 16, "queue": 6}  # fmt: skip
DOUBLES = {"packed": 2 * (41 + 8 * 20), "dense_at": 4, "value": 41, "h": 20, "supply": 20, "constant": 3, "t_h": 7 * 16,
           "C": 7 * 16 * 16, "ft": 7 * 5 * 16, "t_square": 7 * 11, "t_constant": 7}  # fmt: skip


def test_prepared_members_have_room_and_do_not_overlap() -> None:
    offsets = prepared_offsets(*COUNTS.values())
    base = 1 << 40
    members = dict(zip(PREPARED, prepared_addresses(offsets, base, 16), strict=True))
    assert members.pop("padded") == 16
    ends = [*sorted(members.values()), base + offsets[-1]]
    room = {name: min(end for end in ends if end > at) - at for name, at in members.items()}
    assert len(set(members.values())) == len(members)
    assert min(ends) == base
    assert all(room[name] >= 4 * entries for name, entries in INTEGERS.items())
    assert all(room[name] >= 8 * entries for name, entries in DOUBLES.items())
    assert all(at % 8 == 0 for at in ends)
    assert all(members[name] % 16 == 0 for name in ("entry", "t_entry", "packed"))


def test_offsets_are_kept() -> None:
    assert prepared_offsets(*COUNTS.values()) is prepared_offsets(*COUNTS.values())


def test_structs_are_words_in_the_order_of_their_members() -> None:
    values = list(range(len(PROBLEM.members)))
    start = sum(map(len, PROBLEM.parts[:3]))
    words = PROBLEM_HEAD(*values[:start]) + PROBLEM_TAIL(*values[start:])
    assert len(words) == 8 * len(values)
    for place, name in enumerate(PROBLEM.members):
        (word,) = unpack_from("=d" if name in ("tol", "weight_tolerance") else "=q", words, 8 * place)
        assert word == place


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
    driver.launch("tfgw_solve", 12, 34, 56, 90, 78, b"\0one", b"\0two")
    return fake


def test_a_launch_passes_the_addresses_of_its_structs(monkeypatch: pytest.MonkeyPatch) -> None:
    ((kernel, *shape, shared, stream, arguments, extra),) = launch_with((0,), monkeypatch).calls
    assert (kernel.value, shape, shared, stream.value, extra) == (12, [34, 1, 1, 56, 1, 1], 90, 78, None)
    pointers = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_void_p))
    assert [ctypes.string_at(pointers[i], 4) for i in range(2)] == [b"\0one", b"\0two"]


def test_a_launch_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="tfgw: tfgw_solve failed: CUDA_ERROR_INVALID_VALUE"):
        launch_with((1,), monkeypatch)


def test_a_thread_without_a_context_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: asked.append(True))
    assert len(launch_with((201, 0), monkeypatch).calls) == 2
    assert asked == [True]


def test_the_word_of_a_solve_that_was_given_up_is_not_another_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernels may set the word until the event behind them has come."""
    zeros, waits = torch.zeros, []
    event = SimpleNamespace(record=lambda stream: None, wait=lambda: waits.append("wait"))
    monkeypatch.setattr(torch, "zeros", lambda *size, pin_memory, dtype: zeros(*size, dtype=dtype))
    monkeypatch.setattr(driver, "Event", lambda: event)
    check = Check()
    check.begin()
    check.end(stream=0)
    assert check.passed()
    check.begin()
    assert waits == ["wait"]  # of `passed`
    check.end(stream=0)
    check.begin()
    assert waits == ["wait", "wait"]

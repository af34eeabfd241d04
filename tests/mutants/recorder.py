"""A plugin of pytest: records how long each test takes, and which tests start processes.

Lines that run in another process are not recorded by coverage. ``TFGW_RECORDED_TESTS`` names the file to write.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

_seconds: dict[str, float] = defaultdict(float)
_starting_processes: set[str] = set()
_current: list[str] = []


def pytest_configure() -> None:
    def hook(event: str, _: tuple[Any, ...]) -> None:
        if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
            _starting_processes.update(_current)

    sys.addaudithook(hook)


def _noted(function: Callable[..., int]) -> Callable[..., int]:
    def fork_exec(*arguments: Any) -> int:
        _starting_processes.update(_current)
        return function(*arguments)

    return fork_exec


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    import _posixsubprocess  # which multiprocessing uses, without an event

    _current.append(item.nodeid)
    with mock.patch.object(_posixsubprocess, "fork_exec", _noted(_posixsubprocess.fork_exec)):
        result = yield
    _current.pop()
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] += report.duration


def pytest_sessionfinish() -> None:
    recorded = {"seconds": _seconds, "starting_processes": sorted(_starting_processes)}
    Path(os.environ["TFGW_RECORDED_TESTS"]).write_text(json.dumps(recorded))

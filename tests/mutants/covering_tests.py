"""Which tests run a line: recorded once for all tests of `RECORDED` that are not slow, by coverage.

What was recorded is kept in ``build/mutants``. Files of tests that changed since are recorded again.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from coverage import CoverageData

from tests.mutants.modules import ROOT

RECORDED = ("train", "paper", "nn", "estimators", "cli", "datasets", "ot")
IGNORED = ("tests/ot/cuda", "tests/train/cuda_graph")  # the emulation runs what a GPU would
WORK = Path("build/mutants")
LINES = WORK / "coverage"
TESTS = WORK / "tests.json"


class RecordedTests(NamedTuple):
    """What was recorded besides the lines."""

    seconds: dict[str, float]
    """Of each test, by the name that pytest gives it."""
    starting_processes: list[str]
    """Coverage does not see what these run elsewhere."""
    digests: dict[str, str]
    """Of the files of tests and of the package, as they were."""


def record() -> RecordedTests:
    """Record the tests of all files that are new or changed; they must pass."""
    known = RecordedTests(**json.loads(TESTS.read_text())) if TESTS.exists() else RecordedTests({}, [], {})
    files = {str(file): _digest(file) for folder in RECORDED for file in Path("tests", folder).rglob("test_*.py")}
    files = {file: digest for file, digest in files.items() if not file.startswith(IGNORED)}
    changed = [file for file in sorted(files) if known.digests.get(file) != files[file]]
    if not changed:
        return known
    print(f"recording which lines the tests of {len(changed)} files run", flush=True)
    new = _run(changed)
    kept = {test: spent for test, spent in known.seconds.items() if test.partition("::")[0] not in changed}
    starting = [test for test in known.starting_processes if test in kept]
    sources = {str(file): _digest(file) for file in Path(ROOT).rglob("*.py")} if not known.digests else {}
    digests = known.digests | sources | {file: files[file] for file in changed}
    found = RecordedTests(kept | new.seconds, starting + new.starting_processes, digests)
    TESTS.write_text(json.dumps(found._asdict()))
    return found


def covering(recorded: RecordedTests, module: str, lines: Iterable[int]) -> list[str]:
    """The tests that run one of the lines: first those of its part of the package, in the order of their time.

    For a line that runs while the module is imported, and if the module has changed since, all that run any of its
    lines, and those of files that import it, which may only read its constants. For a line that never ran here, first
    of all those that start processes, which may run it there.
    """
    by_line = _tests_by_line(str(Path(ROOT, module).absolute()))
    is_known = recorded.digests[str(Path(ROOT, module))] == _digest(Path(ROOT, module))
    direct = {test for line in lines if is_known for test in by_line.get(line, ())}
    folder = f"tests/{module.partition('/')[0]}/"
    elsewhere = {test for test in recorded.starting_processes if test.startswith(folder)}
    is_elsewhere = is_known and not any(line in by_line for line in lines)
    found = direct or {test for tests in by_line.values() for test in tests} | _importing(recorded, module)
    sharing = {test.partition("::")[0] for test in found if _shares_results(test.partition("::")[0])}
    found |= elsewhere | {test for test in recorded.seconds if test.partition("::")[0] in sharing}

    def place(test: str) -> tuple[bool, bool, float]:
        return not (is_elsewhere and test in elsewhere), not test.startswith(folder), recorded.seconds[test]

    return sorted((test for test in found if test in recorded.seconds), key=place)


@cache
def _tests_by_line(file: str) -> dict[int, set[str]]:
    data = CoverageData(str(LINES))
    data.read()
    contexts = data.contexts_by_lineno(file)
    return {line: {test.partition("|")[0] for test in tests} - {""} for line, tests in contexts.items()}


def _importing(recorded: RecordedTests, module: str) -> set[str]:
    name = f"from tfgw.{module.removesuffix('.py').replace('/', '.')} import"
    return {test for test in recorded.seconds if name in _text(test.partition("::")[0])}


@cache
def _text(file: str) -> str:
    return Path(file).read_text() if Path(file).exists() else ""


@cache
def _shares_results(file: str) -> bool:
    """Whether what one test computes is looked at by others, so that all of them count."""
    return "scope=" in _text(file) or "@cache" in _text(file)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def _run(files: list[str]) -> RecordedTests:
    WORK.mkdir(parents=True, exist_ok=True)
    settings, recorded = WORK / "coverage.ini", WORK / "recorded.json"
    settings.write_text(f"[run]\nsource = {ROOT}\ndata_file = {LINES}\n")
    options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "tests.mutants.recorder", "--timeout", "600",
               "--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-append", "--cov-report="]  # fmt: skip
    environment = os.environ | {"TFGW_RECORDED_TESTS": str(recorded), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "pytest", *options, *files], check=True, env=environment)
    return RecordedTests(**json.loads(recorded.read_text()), digests={})

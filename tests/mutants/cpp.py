"""Run the tests against mutants of the C++ core: ``python -m tests.mutants.cpp``.

A copy of the sources is built once, and again for every mutant of `cpp_decisions`. The core's own tests come first,
then those of `TESTS` with the changed extension. A mutant is killed by a failing test, or by tests that take far longer
than they should. What was found is kept in ``build/mutants/cpp.jsonl`` and not run again while sources and tests stay
as they are.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import nanobind

from tests.mutants.cpp_decisions import MUTANTS, Mutant
from tests.mutants.forked_pytest import first_failure, import_libraries, run_pytest

WORK = Path("build/mutants/cpp").absolute()
TREE = WORK / "tree"
BUILT = WORK / "built"
OUTPUT = WORK / "output.txt"
RESULTS = WORK.with_suffix(".jsonl")
COPIED = ("CMakeLists.txt", "src/tfgw/ot/cpp", "src/tfgw/ot/cuda", "src/tfgw/ot/bindings", "tests/cpp")
TESTS = {name: f"tests/ot/test_{name}.py" for name in MUTANTS}
GOAL = 0.9
PLUGIN = ["-p", "tests.mutants.changed_core"]
PATIENCE = 900  # seconds for all tests of one mutant


def main() -> int:
    """Run all mutants; returns 1 if the score is too low, or if what survives is not what the table says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=1e9, help="start no mutant after so many minutes")
    parser.add_argument("--groups", nargs="+", default=list(MUTANTS), help="only these groups of the table")
    args = parser.parse_args()
    end = time.monotonic() + 60 * args.minutes
    import_libraries()
    known, digest = _read_results(), _digest()
    _prepare()
    if digest not in known:
        if _failure(next(iter(TESTS))) is not None:
            raise SystemExit(f"tests fail without any change; see {OUTPUT}")
        _append(digest, "passed without any change")
    survivors, done = [], 0
    mutants = [(test, mutant) for test in args.groups for mutant in MUTANTS[test]]
    for number, (test, mutant) in enumerate(mutants, start=1):
        key = hashlib.sha256(repr((*mutant[:3], digest)).encode()).hexdigest()[:16]
        if key not in known:
            if time.monotonic() > end:
                print(f"the time is over after {done} of {len(mutants)} mutants; run it again to continue")
                break
            known[key] = _run(mutant, test)
            _append(key, known[key])
        done += 1
        print(f"{number}/{len(mutants)} {_describe(mutant)}: {known[key]}", flush=True)
        if known[key] == "survived":
            survivors.append(mutant)
    return _report(done, survivors)


def _prepare() -> None:
    """A fresh copy of the sources, built."""
    shutil.rmtree(WORK, ignore_errors=True)
    for name in COPIED:
        target = TREE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if Path(name).is_dir():
            shutil.copytree(name, target, dirs_exist_ok=True)
        else:
            # Mutants are built more often than they run.
            target.write_text(Path(name).read_text().replace("-O3", "-O1"))
    options = {"SKBUILD": "ON", "TFGW_TESTS": "ON", "Python_EXECUTABLE": sys.executable,
               "nanobind_DIR": nanobind.cmake_dir(), "CMAKE_BUILD_TYPE": ""}  # fmt: skip
    settings = [f"-D{name}={value}" for name, value in options.items()]
    subprocess.run(["cmake", "-G", "Ninja", "-S", TREE, "-B", BUILT, *settings], check=True, stdout=subprocess.DEVNULL)
    if not _build():
        raise SystemExit(f"the core does not build; see {OUTPUT}")


def _digest() -> str:
    """Results hold while sources and tests stay as they are."""
    files = [file for name in COPIED for file in sorted(Path(name).rglob("*")) if file.is_file()]
    contents = [file.read_bytes() for file in [*files, *map(Path, TESTS.values())] if "__pycache__" not in file.parts]
    return hashlib.sha256(b"".join(contents)).hexdigest()


def _read_results() -> dict[str, str]:
    if not RESULTS.exists():
        return {}
    return dict(map(json.loads, RESULTS.read_text().splitlines()))


def _append(key: str, status: str) -> None:
    with RESULTS.open("a") as file:
        file.write(json.dumps([key, status]) + "\n")


def _run(mutant: Mutant, first_test: str) -> str:
    file = TREE / mutant.file
    original = file.read_text()
    assert original.count(mutant.before) == 1, f"{mutant.file}: {mutant.before!r} must stand there once"
    users = _users(original, mutant.before) if file.name == "rules.cuh" else [file]
    _write(file, original.replace(mutant.before, mutant.after), users)
    try:
        status = _failure(first_test) if _build() else "does not compile"
    finally:
        _write(file, original, users)
    return status or "survived"


def _users(rules: str, changed: str) -> list[Path]:
    """Sources that use the rule with the changed text, directly or by another rule: all others stay as they are."""
    definition = re.compile(r"^(?:constexpr|TFGW_HD|enum class) ?(?:\w+ )?(\w+)(?= =|\(| :)", re.MULTILINE)
    starts = [*definition.finditer(rules)]
    ends = [following.start() for following in starts[1:]] + [len(rules)]
    bodies = {start[1]: rules[start.start() : end] for start, end in zip(starts, ends, strict=True)}
    names = {name for name, body in bodies.items() if changed in body}
    assert names, f"rules.cuh: no rule contains {changed!r}"
    for _ in bodies:
        names |= {name for name, body in bodies.items() if _mentions(body, names)}
    core = TREE / "src/tfgw/ot/cpp"
    names |= {file.stem for file in core.glob("*.hpp") if _mentions(file.read_text(), names)}
    sources = [*core.glob("*.cpp"), *(TREE / "tests/cpp").glob("*.cpp")]
    return [source for source in sources if _mentions(source.read_text(), names)]


def _mentions(text: str, names: set[str]) -> bool:
    return any(re.search(rf"\b{name}\b", text) for name in names)


def _write(file: Path, text: str, users: list[Path]) -> None:
    """Change a file, and make the build look at its users only."""
    before = file.stat()
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    for user in users:
        user.touch()


def _build() -> bool:
    return _call("cmake", "--build", BUILT, "--target", "test_core", "_core", "--parallel", patience=600) == 0


def _failure(first_test: str) -> str | None:
    """What noticed the change, if anything did."""
    if _call(BUILT / "test_core", patience=PATIENCE) != 0:
        return "killed by test_core"
    extension = BUILT / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    tests = sorted(TESTS.values(), key=lambda file: file != TESTS[first_test])
    environment = {"TFGW_CHANGED_CORE": str(extension)}
    status = run_pytest([*PLUGIN, *tests], output=OUTPUT, patience=PATIENCE, environment=environment)
    if status is None:
        return "killed by its time"
    return f"killed by {first_failure(OUTPUT) or 'a crash'}" if status else None


def _call(*command: str | Path, patience: float) -> int | None:
    """Exit status; ``None`` if it did not end in time."""
    with OUTPUT.open("wb") as output:
        try:
            return subprocess.run(command, stdout=output, stderr=output, timeout=patience).returncode
        except subprocess.TimeoutExpired:
            return None


def _describe(mutant: Mutant) -> str:
    return f"{Path(mutant.file).name} {mutant.before.strip()}  →  {mutant.after.strip()}"


def _report(done: int, survivors: list[Mutant]) -> int:
    score = 1 - len(survivors) / max(1, done)
    print(f"{done} mutants, {len(survivors)} survived: {100 * score:.1f} % killed")
    unexplained = [mutant for mutant in survivors if mutant.survives_because is None]
    for mutant in unexplained:
        print(f"without a reason in cpp_decisions.py: {_describe(mutant)}")
    return 1 if unexplained or score < GOAL else 0


if __name__ == "__main__":
    sys.exit(main())

"""Run the tests against mutants of the Python code: ``python -m tests.mutants.python --mutants 240``.

The order of the mutants is fixed, so that a larger number continues a smaller one. For each, the tests that run the
changed line are run, the fastest first, up to the first that fails. A mutant is killed by a failing test, or by tests
that take far longer than they should. What was found is kept in ``build/mutants/python.jsonl``: a kill holds while the
module stays as it is, a survival while its tests do, too.
"""

import argparse
import hashlib
import json
import os
import sys
import time
import tomllib
from collections.abc import Iterable
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from tests.mutants.covering_tests import RecordedTests, covering, record
from tests.mutants.forked_pytest import first_failure, import_libraries, run_pytest
from tests.mutants.modules import MODULES, ROOT
from tests.mutants.mutations import Mutant, mutants

WORK = Path("build/mutants")
RESULTS = WORK / "python.jsonl"
OUTPUT = WORK / "output.txt"
CHOSEN = WORK / "chosen.json"
SURVIVORS = Path(__file__).with_name("survivors.toml")
GOAL = 0.9
PATIENCE = 60  # seconds that tests may take besides three times what they usually do
FIRST_TESTS = 20
NO_TESTS = 5  # pytest's exit status
IDENTITY = ("module", "function", "before", "after")
PLUGIN = ["-p", "tests.mutants.chosen_tests"]

Result = dict[str, Any]


def main() -> int:
    """Run what is asked for; returns 1 if the score is too low or a survivor has no reason."""
    args = _arguments()
    recorded = record()
    import_libraries()
    chosen = _chosen(args)
    known = _read_results()
    end = time.monotonic() + 60 * args.minutes
    results = []
    for number, mutant in enumerate(chosen, start=1):
        tests = _affordable(covering(recorded, mutant.module, mutant.lines), recorded, args.seconds)
        key = f"{mutant.key}-{_digest([_source(mutant.module)])}"
        if not _holds(known.get(key), tests):
            if time.monotonic() > end:
                print(f"the time is over after {number - 1} of {len(chosen)} mutants; run it again to continue")
                break
            known[key] = _run(mutant, tests, patience=3 * _total(tests, recorded) + PATIENCE)
            _append({"key": key} | known[key])
            print(f"{number}/{len(chosen)} {known[key]['status']}: {_describe(known[key])}", flush=True)
        results.append(known[key])
    return _report(results)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mutants", type=int, default=240, help="how many of all mutants to run (default: 240)")
    parser.add_argument("--first", type=int, default=0, help="how many to leave out before (default: 0)")
    parser.add_argument("--modules", nargs="+", default=["*"], help="only modules that match, such as 'train/*'")
    parser.add_argument("--listed", action="store_true", help="run those of survivors.toml: do they still survive?")
    parser.add_argument("--seconds", type=float, default=60, help="of the tests of a mutant; longer ones are left out")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no mutant after so many minutes")
    return parser.parse_args()


def _chosen(args: argparse.Namespace) -> list[Mutant]:
    """Mutants in an order that does not depend on where they stand."""
    modules = [module for module in MODULES if any(fnmatch(module, pattern) for pattern in args.modules)]
    everything = [mutant for module in modules for mutant in mutants(module, _source(module))]
    if args.listed:
        chosen = [mutant for mutant in everything if _has_reason(vars(mutant))]
    else:
        chosen = sorted(everything, key=lambda mutant: mutant.key)[args.first : args.first + args.mutants]
    print(f"{len(chosen)} of {len(everything)} mutants of {len(modules)} modules")
    return chosen


def _source(module: str) -> str:
    return _text(str(Path(ROOT, module)))


def _affordable(tests: list[str], recorded: RecordedTests, seconds: float) -> list[str]:
    """The first of the tests, as many as fit into the time, and one in any case."""
    spent, found = 0.0, tests[:1]
    for test in tests[1:]:
        spent += recorded.seconds[test]
        if spent > seconds:
            break
        found.append(test)
    return found


def _total(tests: list[str], recorded: RecordedTests) -> float:
    return sum(recorded.seconds[test] for test in tests)


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


def _holds(result: Result | None, tests: list[str]) -> bool:
    """A result holds while the module stays as it is; that no test failed, while the tests do, too."""
    if result is None or result["status"] != "survived":
        return result is not None
    return result["tests_digest"] == _digest_of_tests(tests)


def _digest_of_tests(tests: list[str]) -> str:
    return _digest(map(_text, _files(tests)))


@cache
def _text(file: str) -> str:
    return Path(file).read_text()


def _files(tests: list[str]) -> list[str]:
    return sorted({test.partition("::")[0] for test in tests})


def _run(mutant: Mutant, tests: list[str], *, patience: float) -> Result:
    changed = (WORK / "mutant.py").absolute()
    changed.write_text(mutant.source)
    start = time.monotonic()
    environment = {"TFGW_MUTANT": os.pathsep.join([str(Path(ROOT, mutant.module).absolute()), str(changed)])}
    status: int | None = 0
    for part in (tests[:FIRST_TESTS], tests[FIRST_TESTS:]):  # fewer files to import for most mutants
        if status == 0 and part:
            CHOSEN.write_text(json.dumps(part))
            environment["TFGW_CHOSEN_TESTS"] = str(CHOSEN.absolute())
            status = run_pytest([*PLUGIN, *_files(part)], output=OUTPUT, patience=patience, environment=environment)
            assert status != NO_TESTS
    return {
        "module": mutant.module,
        "line": mutant.lines[0],
        "function": mutant.function,
        "kind": mutant.kind,
        "before": mutant.before,
        "after": mutant.after,
        "status": {0: "survived", None: "timeout"}.get(status, "killed"),
        "tests": len(tests),
        "tests_digest": _digest_of_tests(tests),
        "seconds": round(time.monotonic() - start, 1),
        "killed_by": first_failure(OUTPUT) if status else None,
    }


def _read_results() -> dict[str, Result]:
    WORK.mkdir(parents=True, exist_ok=True)
    if not RESULTS.exists():
        return {}
    entries = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return {entry.pop("key"): entry for entry in entries}


def _append(entry: Result) -> None:
    with RESULTS.open("a") as file:
        file.write(json.dumps(entry) + "\n")


def _describe(result: Result) -> str:
    return f"{result['module']}:{result['line']} {result['before']}  →  {result['after']}"


def _report(results: list[Result]) -> int:
    survivors = [result for result in results if result["status"] == "survived"]
    score = 1 - len(survivors) / max(1, len(results))
    unexplained = [result for result in survivors if not _has_reason(result)]
    print(f"{len(results)} mutants, {len(survivors)} survived: {100 * score:.1f} % killed")
    for result in unexplained:
        print(f"without a reason in {SURVIVORS.name}: {_describe(result)}")
    return 1 if unexplained or score < GOAL else 0


def _has_reason(mutant: dict[str, Any]) -> bool:
    return any(all(reason[field] == mutant[field] for field in IDENTITY) for reason in _reasons())


@cache
def _reasons() -> list[dict[str, str]]:
    return tomllib.loads(SURVIVORS.read_text())["survivors"]


if __name__ == "__main__":
    sys.exit(main())

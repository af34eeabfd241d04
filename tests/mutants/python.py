"""Run the tests against mutants of the Python code: ``python -m tests.mutants.python --mutants 240``.

The order of the mutants is fixed, so that a larger number continues a smaller one. A mutant is killed by a failing
test, or by tests that take far longer than they should. What was found is kept in ``build/mutants/python.jsonl`` and
not run again while module and tests stay as they are.
"""

import argparse
import hashlib
import json
import os
import sys
import time
import tomllib
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from tests.mutants.forked_pytest import first_failure, import_libraries, run_pytest
from tests.mutants.modules import MODULES, ROOT
from tests.mutants.mutations import Mutant, mutants

WORK = Path("build/mutants")
RESULTS = WORK / "python.jsonl"
OUTPUT = WORK / "output.txt"
SURVIVORS = Path(__file__).with_name("survivors.toml")
GOAL = 0.9
PATIENCE = 30  # seconds that tests may take besides three times what they usually do

Result = dict[str, Any]


def main() -> int:
    """Run what is asked for; returns 1 if the score is too low or a survivor has no reason."""
    args = _arguments()
    import_libraries()
    chosen = _chosen(args.modules, args.mutants)
    known = _read_results()
    end = time.monotonic() + 60 * args.minutes
    results = []
    for number, mutant in enumerate(chosen, start=1):
        key = _result_key(mutant)
        if key not in known:
            if time.monotonic() > end:
                print(f"the time is over after {number - 1} of {len(chosen)} mutants; run it again to continue")
                break
            known[key] = _run(mutant, patience=3 * sum(map(_expected_seconds, MODULES[mutant.module])) + PATIENCE)
            _append({"key": key} | known[key])
            print(f"{number}/{len(chosen)} {known[key]['status']}: {_describe(known[key])}", flush=True)
        results.append(known[key])
    return _report(results)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mutants", type=int, default=240, help="how many of all mutants to run (default: 240)")
    parser.add_argument("--modules", nargs="+", default=["*"], help="only modules that match, such as 'train/*'")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no mutant after so many minutes")
    return parser.parse_args()


def _chosen(patterns: list[str], number: int) -> list[Mutant]:
    """The first mutants in an order that does not depend on where they stand."""
    modules = [module for module in MODULES if any(fnmatch(module, pattern) for pattern in patterns)]
    everything = [mutant for module in modules for mutant in mutants(module, _source(module))]
    print(f"{min(number, len(everything))} of {len(everything)} mutants of {len(modules)} modules")
    return sorted(everything, key=lambda mutant: mutant.key)[:number]


def _source(module: str) -> str:
    return Path(ROOT, module).read_text()


def _result_key(mutant: Mutant) -> str:
    """A result holds while the module and its tests stay as they are."""
    digest = hashlib.sha256(_source(mutant.module).encode())
    for test in MODULES[mutant.module]:
        digest.update(Path(test).read_bytes())
    return f"{mutant.key}-{digest.hexdigest()[:16]}"


@cache
def _expected_seconds(tests: str) -> float:
    """How long the tests of a file take; they must pass."""
    start = time.monotonic()
    status = run_pytest([tests], output=OUTPUT, patience=600, environment={})
    if status != 0:
        raise SystemExit(f"{tests}: fails without any change; see {OUTPUT}")
    print(f"{tests}: {time.monotonic() - start:.1f} s", flush=True)
    return time.monotonic() - start


def _run(mutant: Mutant, *, patience: float) -> Result:
    changed = (WORK / "mutant.py").absolute()
    changed.write_text(mutant.source)
    start = time.monotonic()
    place = os.pathsep.join([str(Path(ROOT, mutant.module).absolute()), str(changed)])
    status = run_pytest(MODULES[mutant.module], output=OUTPUT, patience=patience, environment={"TFGW_MUTANT": place})
    return {
        "module": mutant.module,
        "line": mutant.line,
        "function": mutant.function,
        "kind": mutant.kind,
        "before": mutant.before,
        "after": mutant.after,
        "status": {0: "survived", None: "timeout"}.get(status, "killed"),
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
    reasons = tomllib.loads(SURVIVORS.read_text())["survivors"]
    unexplained = [result for result in survivors if not any(_is_about(reason, result) for reason in reasons)]
    print(f"{len(results)} mutants, {len(survivors)} survived: {100 * score:.1f} % killed")
    for result in unexplained:
        print(f"without a reason in {SURVIVORS.name}: {_describe(result)}")
    return 1 if unexplained or score < GOAL else 0


def _is_about(reason: dict[str, str], result: Result) -> bool:
    return all(reason[field] == result[field] for field in ("module", "function", "before", "after"))


if __name__ == "__main__":
    sys.exit(main())

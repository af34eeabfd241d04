"""What counts as a small change, and that the list of survivors fits the sources, which change."""

import tomllib
from pathlib import Path

from tests.mutants.modules import MODULES, ROOT
from tests.mutants.mutations import mutants

SURVIVORS = tomllib.loads(Path(__file__).with_name("survivors.toml").read_text())["survivors"]
SOURCE = '''
def f(a, b):
    """Text."""
    if a < 1:
        return [
            (x, y) for x, y in zip(a, b, strict=True)
        ]
    raise ValueError(f"{a + b}")
'''


def test_all_changes_of_a_function() -> None:
    found = [(mutant.kind, mutant.before, mutant.after, [*mutant.lines]) for mutant in mutants("m.py", SOURCE)]
    listed = "[(x, y) for x, y in zip(a, b, strict=True)]"
    assert found == [
        ("condition", "if a < 1:", "if not a < 1:", [4]),
        ("comparison", "a < 1", "a <= 1", [4]),
        ("constant", "1", "2", [4]),
        ("return", f"return {listed}", "return None", [5, 6, 7]),
        ("order", "zip(a, b, strict=True)", "zip(b, a, strict=True)", [5, 6, 7]),
        ("statement", "raise ValueError(f'{a + b}')", "pass", [8]),
    ]


def test_no_change_that_can_never_be_noticed() -> None:
    """The larger of two numbers is the same in either order, and what a person reads decides nothing."""
    assert mutants("m.py", "class Options(TypedDict, total=False):\n    size: int\n") == []
    source = "def f(a: int, b):\n    warnings.warn(str(a, b))\n    assert a, b\n    return max(a, b)\n"
    assert [(mutant.kind, mutant.after) for mutant in mutants("m.py", source)] == [("return", "return None")]


def test_keys_depend_on_what_is_changed_and_not_on_where_it_stands() -> None:
    moved = [mutant.key for mutant in mutants("m.py", f"import os\n\n\n{SOURCE}")]
    assert moved == [mutant.key for mutant in mutants("m.py", SOURCE)]
    twice = [mutant.key for mutant in mutants("m.py", "def f(a):\n    a += 1\n    a += 1\n")]
    assert len(set(twice)) == len(twice) == 4


def test_modules_exist() -> None:
    assert [module for module in MODULES if not Path(ROOT, module).is_file()] == []


def test_survivors_are_mutants_of_the_sources() -> None:
    modules = {survivor["module"] for survivor in SURVIVORS}
    known = {
        (mutant.module, mutant.function, mutant.before, mutant.after)
        for module in modules
        for mutant in mutants(module, Path(ROOT, module).read_text())
    }
    gone = [one for one in SURVIVORS if tuple(one[k] for k in ("module", "function", "before", "after")) not in known]
    assert gone == []

"""The table of mutants fits the sources, which change."""

from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.cpp_decisions import MUTANTS, Mutant

ALL = [mutant for group in MUTANTS.values() for mutant in group]


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: f"{Path(mutant.file).name}: {mutant.after}")
def test_a_mutant_changes_one_place(mutant: Mutant) -> None:
    assert Path(mutant.file).read_text().count(mutant.before) == 1
    assert mutant.after != mutant.before


def test_no_mutant_is_listed_twice() -> None:
    assert max(Counter(mutant[:3] for mutant in ALL).values()) == 1


def test_the_tests_that_ought_to_notice_exist() -> None:
    assert all(Path(f"tests/ot/test_{name}.py").is_file() for name in MUTANTS)

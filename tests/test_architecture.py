"""Who may import whom: ``ot`` knows nothing of ``nn``, ``datasets``, ``train``; ``nn`` nothing of ``train``,
``paper``; only ``cli`` and ``report`` see everything."""

import ast
from pathlib import Path

import pytest

import tfgw

ROOT = Path(tfgw.__file__).parent
EVERYTHING = {"datasets", "ot", "nn", "train", "estimators", "baselines", "paper", "report", "cli"}
FORBIDDEN = {
    "ot": EVERYTHING - {"ot"},
    "datasets": EVERYTHING - {"datasets", "ot"},  # ot has the canonical node order
    "nn": EVERYTHING - {"nn", "ot", "datasets"},
    "train": {"paper", "report", "cli"},
    "estimators": {"paper", "report", "cli"},
    "baselines": {"paper", "report", "cli"},
    "paper": {"report", "cli"},
}
TEST_ONLY = {"hypothesis", "networkx", "ot", "pytest", "scipy"}  # POT is imported as `ot`


def imported_modules(path: Path) -> set[str]:
    """Full names of all modules that a file imports, wherever in the file it does."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def files_of(part: str) -> list[Path]:
    return sorted((ROOT / part).rglob("*.py"))


@pytest.mark.parametrize("part", [part for part in FORBIDDEN if (ROOT / part).is_dir()])
def test_import_rule(part: str) -> None:
    assert files_of(part)
    for path in files_of(part):
        for name in imported_modules(path):
            parts = name.split(".")
            assert not (parts[0] == "tfgw" and len(parts) > 1 and parts[1] in FORBIDDEN[part]), f"{path}: {name}"


def test_oracles_are_for_tests_only() -> None:
    for path in files_of("ot") + files_of("nn"):
        assert not {name.split(".")[0] for name in imported_modules(path)} & TEST_ONLY, path
    assert "tfgw.ot.reference" not in {name for path in ROOT.rglob("*.py") for name in imported_modules(path)}

"""Who may import whom: ``ot`` knows nothing of ``nn``, ``datasets``, ``train``; ``nn`` nothing of ``train``,
``paper``; only ``cli`` and ``report`` see everything; a backend knows the problem and nothing else; nobody imports
private names."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import tfgw

ROOT = Path(tfgw.__file__).parent
EVERYTHING = {
    "datasets", "ot", "nn", "train", "estimators", "baselines", "explanations", "plot", "paper", "report", "cli",
}  # fmt: skip
FORBIDDEN = {
    "ot": EVERYTHING - {"ot"},
    "datasets": EVERYTHING - {"datasets", "ot"},  # ot has the canonical node order
    "nn": EVERYTHING - {"nn", "ot", "datasets"},
    "train": {"explanations", "plot", "paper", "report", "cli"},
    "estimators": {"explanations", "paper", "report", "cli"},  # a notebook shows templates, which plot draws
    "baselines": {"explanations", "plot", "paper", "report", "cli"},
    "explanations": {"baselines", "plot", "paper", "report", "cli"},
    "plot": {"baselines", "paper", "report", "cli"},
    "paper": {"report", "cli"},
    "report": {"cli"},
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


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def own_imports(path: Path, *, types: bool = True) -> set[str]:
    """The modules of the package that a file imports; of a package only if it imports names that no module has.

    Without ``types``, imports in ``if TYPE_CHECKING:`` do not count.
    """
    found = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules = {*MODULES, "tfgw.ot._core"}
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else str(node.module) for name in names}
        elif types or not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            waiting += ast.iter_child_nodes(node)
    return {name for name in found if name.split(".")[0] == "tfgw"}


def files_of(part: str) -> list[Path]:
    return sorted((ROOT / part).rglob("*.py"))


@pytest.mark.parametrize("part", FORBIDDEN)
def test_import_rule(part: str) -> None:
    assert files_of(part)
    for path in files_of(part):
        for name in imported_modules(path):
            parts = name.split(".")
            assert not (parts[0] == "tfgw" and len(parts) > 1 and parts[1] in FORBIDDEN[part]), f"{path}: {name}"


BACKENDS = {
    "cpu.py": {"tfgw.ot.problem", "tfgw.ot._core"},
    "cuda": {"tfgw.ot.problem", "tfgw.ot._core", "tfgw.ot.backends.cuda"},
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_knows_only_the_problem(backend: str) -> None:
    place = ROOT / "ot" / "backends" / backend
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    assert files
    for path in files:
        ours = own_imports(path)
        known = {name for name in ours if any(name == one or name.startswith(f"{one}.") for one in BACKENDS[backend])}
        assert ours == known, f"{path}: {ours - known}"


def test_no_modules_import_each_other() -> None:
    """Not even inside functions, but for imports of types only. The error names the modules of a cycle."""
    graph = {name: own_imports(path, types=False) for name, path in MODULES.items()}
    assert "tfgw.ot.operators" in graph["tfgw.ot.transformed"]
    TopologicalSorter(graph).prepare()


def test_nobody_imports_private_names() -> None:
    """But for the extension module, which is an implementation as a whole."""
    for path in sorted(ROOT.rglob("*.py")):
        for name in imported_modules(path):
            private = [part for part in name.split(".")[1:] if part.startswith("_") and not part.startswith("__")]
            assert not name.startswith("tfgw.") or private in ([], ["_core"]), f"{path}: {name}"


def test_modules_that_a_reader_may_confuse_have_different_names() -> None:
    """But for folders whose modules are named after what they mirror: a command, a figure, a protocol."""
    mirrors = {"cli", "figures", "protocols"}
    seen: dict[str, Path] = {}
    for path in sorted(ROOT.rglob("*.py")):
        if path.stem == "__init__" or path.parent.name in mirrors:
            continue
        assert path.stem not in seen, f"{path} and {seen[path.stem]}"
        seen[path.stem] = path


def test_oracles_are_for_tests_only() -> None:
    for path in files_of("ot") + files_of("nn"):
        assert not {name.split(".")[0] for name in imported_modules(path)} & TEST_ONLY, path


WALKS = re.findall(r"^- `(src/\S+\.py):([\w.]+)`$", (ROOT.parents[1] / "CONTRIBUTING.md").read_text(), re.MULTILINE)


def test_there_are_four_walks() -> None:
    assert len(WALKS) > 30


@pytest.mark.parametrize(("file", "name"), WALKS)
def test_a_station_of_a_walk_exists(file: str, name: str) -> None:
    body: list[ast.stmt] = ast.parse((ROOT.parents[1] / file).read_text()).body
    for part in name.split("."):
        kinds = (ast.FunctionDef, ast.ClassDef)
        (found,) = [node for node in body if isinstance(node, kinds) and node.name == part]
        body = found.body

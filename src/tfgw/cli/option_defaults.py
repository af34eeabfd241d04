"""Defaults of options, parsed from the source code of the settings classes. Importing those classes would load PyTorch
and make help slow."""

import ast
from functools import cache
from importlib import resources
from typing import Any

FIELDS = {"layers": "num_layers", "templates": "num_templates", "starts": "n_starts", "estimators": "n_estimators"}
"""Settings whose name differs from the option."""

SOURCES = {
    "cli/source.py": "Source",
    "nn/models.py": "TFGWConfig",
    "train/config.py": "TrainConfig",
    "train/preprocessing.py": "Preprocessing",
}


def default_of(option: str) -> Any:
    """Return the default of an option of ``tfgw train``, or ``None`` if it depends on the data or on other options."""
    field = FIELDS.get(option, option)
    return recipes()["default"].get(field, _defaults().get(field))


@cache
def recipes() -> dict[str, dict[str, Any]]:
    """Return the recipes by name."""
    tree = ast.parse((resources.files("tfgw") / "train/recipes.py").read_text())
    assignments = (node for node in tree.body if isinstance(node, ast.AnnAssign))
    table = next(node.value for node in assignments if ast.unparse(node.target) == "RECIPES")
    assert table is not None
    found: dict[str, dict[str, Any]] = ast.literal_eval(table)
    return found


def stream_default(option: str) -> Any:
    """Return the default of an option of ``tfgw predict`` and ``tfgw embed``."""
    return _constants("train/graph_stream.py", "GraphStream")[option]


def module_constant(path: str, name: str) -> Any:
    """Return a constant of a module."""
    tree = ast.parse((resources.files("tfgw") / path).read_text())
    assignments = [node for node in tree.body if isinstance(node, ast.Assign)]
    return ast.literal_eval(next(node.value for node in assignments if ast.unparse(node.targets[0]) == name))


@cache
def _defaults() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path, name in SOURCES.items():
        found |= _constants(path, name)
    return found


def _constants(path: str, name: str) -> dict[str, Any]:
    """Return the fields of a class whose default is a literal."""
    found = {}
    for statement in _class(path, name).body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.value, ast.Constant):
            found[ast.unparse(statement.target)] = statement.value.value
    return found


def _class(path: str, name: str) -> ast.ClassDef:
    tree = ast.parse((resources.files("tfgw") / path).read_text())
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)

"""The classifier of a cell: any scikit-learn classifier over graphs, named by its import path."""

import importlib
from typing import Any

import numpy as np

from tfgw.paper.cells import Cell


def classifier_class(path: str) -> Any:
    """The class at an import path, ``"package.module:Class"``."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"class {path!r}: cannot be imported, {error}") from error


def new_classifier(cell: Cell, *, accelerator: str, preprocessed: bool) -> Any:
    """The untrained classifier of a cell, its random state drawn from the cell's seeds.

    Unless its configuration names another recipe, it is trained by the paper's. One that can put graphs in canonical
    order does not do so again where they are ``preprocessed``, nor does it standardise their features again, unless its
    configuration says so. Others keep their default of ``standardize``: what they standardise may be computed from the
    features.
    """
    kind = classifier_class(cell.model)
    known = kind().get_params()
    settings: dict[str, Any] = {"accelerator": accelerator} if "accelerator" in known else {}
    if "recipe" in known:
        settings["recipe"] = "paper"
    if preprocessed and "canonical_order" in known:
        settings |= {name: False for name in ("canonical_order", "standardize") if name in known}
    return kind(**(settings | cell.configuration), random_state=_random_state(cell))


def _random_state(cell: Cell) -> int:
    seeds = (cell.split_seed, cell.fold, cell.seed)
    return int(np.random.SeedSequence(seeds).generate_state(1)[0] >> np.uint32(1))

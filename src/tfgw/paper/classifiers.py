"""The classifier of a cell: any scikit-learn classifier for graphs, given by its import path."""

import importlib
from typing import Any

import numpy as np

from tfgw.paper.cells import Cell


def classifier_class(path: str) -> Any:
    """Import the class at a path, ``"package.module:Class"``."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"class {path!r}: cannot be imported: {error}") from error


def new_classifier(cell: Cell, *, accelerator: str, preprocessed: bool) -> Any:
    """Create the untrained classifier of a cell, with a random state derived from the seeds of the cell.

    It uses the recipe of the paper unless its configuration sets another one. If graphs are ``preprocessed``, a
    classifier with canonical order neither reorders nor standardises them again, unless its configuration says so.
    Other classifiers keep their default of ``standardize``, because they may standardise values computed from the
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

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


def new_classifier(cell: Cell, *, accelerator: str) -> Any:
    """The untrained classifier of a cell, its random state drawn from the cell's seeds."""
    kind = classifier_class(cell.model)
    device = {"accelerator": accelerator} if "accelerator" in kind().get_params() else {}
    return kind(**cell.configuration, **device, random_state=_random_state(cell))


def _random_state(cell: Cell) -> int:
    seeds = (cell.split_seed, cell.fold, cell.seed)
    return int(np.random.SeedSequence(seeds).generate_state(1)[0] >> np.uint32(1))

"""What the time of a cell depends on, before it has run."""

import json
from collections.abc import Hashable, Mapping
from functools import lru_cache
from math import log
from typing import Any

from tfgw.paper.cells import Cell
from tfgw.paper.classifiers import classifier_class
from tfgw.paper.time_model import Times
from tfgw.paper.trust import OWN_CLASSES
from tfgw.train import TrainConfig
from tfgw.train.recipes import N_ESTIMATORS, complete

SIZES = {
    "MUTAG": (188, 17.9, 19.8),
    "PTC_MR": (344, 14.3, 14.7),
    "ENZYMES": (600, 32.6, 62.1),
    "PROTEINS_full": (1113, 39.1, 72.8),
    "NCI1": (4110, 29.9, 32.3),
    "IMDB-BINARY": (1000, 19.8, 96.5),
    "IMDB-MULTI": (1500, 13.0, 65.9),
    "COLLAB": (5000, 74.5, 2457.2),
    "4-CYCLES": (200, 25.0, 16.0),
    "SKIP-CIRCLES": (300, 41.0, 82.0),
}
"""Number of graphs, and mean number of their nodes and undirected edges."""

PAIRS = 1.5
"""Exponent of all nodes in the work of models that compare pairs of graphs; some of their steps are linear."""

TYPICAL = {"graphs": 500.0, "nodes": 25.0, "edges": 40.0, "passes": 100.0}


def times_of(cell: Cell, machine: Mapping[str, Any]) -> Times:
    """Describe a cell on a machine; the size of a dataset that is not in ``SIZES`` is assumed to be typical."""
    text = json.dumps(cell.configuration, sort_keys=True)
    graphs, nodes, edges = SIZES.get(cell.dataset, (int(TYPICAL["graphs"]), TYPICAL["nodes"], TYPICAL["edges"]))
    graphs = graphs if cell.graphs is None else min(graphs, cell.graphs)
    sizes = {"graphs": float(graphs), "nodes": nodes, "edges": edges, "passes": float(_passes(text, graphs))}
    return Times(
        traits={
            "model": cell.model,
            "dataset": (cell.dataset, cell.graphs),
            "settings": _without_numbers(text),
            "configuration": text,
            "machine": _machine(machine),
        },
        sizes={name: log(value / TYPICAL[name]) for name, value in sizes.items()},
        log_work=log(sizes["passes"]) + (PAIRS if _compares_pairs(cell.model) else 1) * log(graphs * nodes),
    )


@lru_cache
def _compares_pairs(model: str) -> bool:
    """Whether a model compares all pairs of graphs. Models of others are not imported, because that runs their code."""
    return model.startswith(OWN_CLASSES) and hasattr(classifier_class(model), "precompute")


@lru_cache(maxsize=4096)
def _passes(configuration: str, graphs: int) -> int:
    """Return epochs × networks; 1 for a model that is not trained in epochs."""
    given = json.loads(configuration)
    recipe = given.pop("recipe", None)
    if recipe is None and "epochs" not in given:
        return 1
    try:
        settings = complete(given, recipe or "paper", num_graphs=graphs)
    except ValueError:  # the recipe of an older version
        settings = given
    passes: int = settings.get("epochs", TrainConfig.epochs) * settings.get("n_estimators", N_ESTIMATORS)
    return passes


@lru_cache(maxsize=4096)
def _without_numbers(configuration: str) -> str:
    settings = json.loads(configuration)
    return json.dumps({name: value for name, value in settings.items() if isinstance(value, bool | str | dict)})


def _machine(machine: Mapping[str, Any]) -> Hashable:
    return tuple(machine.get(name) for name in ("processor", "cores", "gpu"))

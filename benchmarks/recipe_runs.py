"""One training run of benchmarks/recipe_search.py, in a module that worker processes can import."""

import argparse
import time
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold

from tfgw.baselines import GIN, OTGNN, DiffPool, DropGIN
from tfgw.datasets import CanonicalOrder
from tfgw.estimators import TFGWClassifier
from tfgw.paper.cell_graphs import load_graphs
from tfgw.train.recipes import recipe_of

MODELS: dict[str, Any] = {"TFGW": TFGWClassifier, "GIN": GIN, "OT-GNN": OTGNN, "DropGIN": DropGIN, "DIFFPOOL": DiffPool}
FOLDS = 10
SPLIT_SEED = 20221128  # differs from that of the protocol `fair`, 0


class Run(NamedTuple):
    """One training run: a configuration, a dataset, a test fold, and a seed."""

    configuration: str
    dataset: str
    fold: int
    seed: int


@cache
def graphs_of(name: str, data_dir: str | None) -> tuple[list[Any], np.ndarray]:
    dataset = CanonicalOrder().of_dataset(load_graphs(name, data_dir))
    return list(dataset), np.array([int(graph.y) for graph in dataset])


def train(run: Run, settings: dict[str, Any], recipe: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    torch.set_num_threads(args.threads)
    graphs, y = graphs_of(run.dataset, args.data_dir)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SPLIT_SEED).split(y, y)
    kept, test = list(folds)[run.fold]
    settings = dict(settings)
    kind = MODELS[settings.pop("model")]
    if "templates_per_class" in settings:
        settings["num_templates"] = settings.pop("templates_per_class") * len(np.unique(y))
    if kind is TFGWClassifier:
        settings["canonical_order"] = False  # the graphs are already in canonical order
    changes = dict(settings.pop("recipe", {}))
    recipe = dict(recipe_of(changes.pop("name")) if "name" in changes else recipe) | changes
    model = kind(recipe=recipe, random_state=run.seed, accelerator=args.accelerator, **settings)
    start = time.perf_counter()
    model.fit([graphs[i] for i in kept], y[kept])
    seconds = time.perf_counter() - start
    probabilities = model.predict_proba([graphs[i] for i in test])
    found = {"accuracy": float((model.classes_[probabilities.argmax(1)] == y[test]).mean()), "seconds": seconds}
    found |= {"train_accuracy": model.history_[-1].score, "alpha": getattr(model, "alpha_", None)}
    return run._asdict() | found | {"labels": y[test].tolist(), "probabilities": probabilities.round(3).tolist()}

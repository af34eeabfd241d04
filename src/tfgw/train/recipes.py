"""Recipes: training settings and heads as data, the same for every network of the package.

A recipe sets values of settings: fields of :class:`TrainConfig`, arguments of :func:`tfgw.nn.heads.prediction_head`,
fields of :class:`tfgw.nn.TFGWConfig`, and :data:`OTHERS`. A network uses those that apply to it. Values set by the user
take precedence. Other settings keep the defaults of these classes, which are those of the paper. docs/recipe.md
describes how the default recipe was selected.
"""

from collections.abc import Mapping
from dataclasses import fields
from math import ceil
from typing import Any

from tfgw.nn import TFGWConfig
from tfgw.train.config import TrainConfig
from tfgw.train.tasks import Task

Recipe = Mapping[str, Any]

RECIPES: dict[str, Recipe] = {
    "default": {
        "n_estimators": 3,
        "templates_per_class": 2,
        "num_layers": 4,
        "width": 32,
        "epochs": 100,
        "fewest_steps": 300,
        "largest_work": 700_000,
        "batch_size": 64,
        "lr": 0.01,
        "weight_decay": 0.1,
        "label_smoothing": 0.1,
        "schedule": "one_cycle",
        "fresh_statistics": True,
        "activation": True,
        "dropout": 0.5,
        "hidden_layers": 1,
        "normalize": True,
        "readout": "distances+sum",
        "training_tol": 1e-4,
    },
    "paper": {},
}
"""Epochs depend on the number of training graphs. ``fewest_steps``: small datasets, which have few batches, are trained
for more epochs, up to this number of steps. ``largest_work``: large datasets are trained for fewer epochs, so that
epochs × graphs × networks is at most this number, in batches that are :data:`BATCH_GROWTH` times as large. If
:data:`FEWEST_EPOCHS` would exceed it, fewer networks are trained.
"""

RULES = ("fewest_steps", "largest_work")
OTHERS = ("n_estimators", "templates_per_class")
"""Settings outside the network and its training: the number of networks in the ensemble, and of templates per class in
each network."""
OF_TFGW_LAYERS = ("training_tol",)
"""Settings that networks without a TFGW layer do not have."""
FEWEST_EPOCHS = 20
BATCH_GROWTH = 4
N_ESTIMATORS, TEMPLATES_PER_CLASS = 1, 4  # if a recipe sets none, like the paper's


def recipe_of(recipe: str | Recipe) -> Recipe:
    """Return a recipe by name; a mapping of settings is checked and returned unchanged."""
    if isinstance(recipe, Mapping):
        unknown = sorted(recipe.keys() - _known())
        if unknown:
            raise ValueError(f"recipe: {unknown[0]!r} is not a setting of a network or its training")
        return recipe
    if not isinstance(recipe, str) or recipe not in RECIPES:
        raise ValueError(f"recipe: must be one of {', '.join(RECIPES)}, or a mapping of settings, got {recipe!r}")
    return RECIPES[recipe]


def complete(
    chosen: Mapping[str, Any], recipe: str | Recipe, *, num_graphs: int, task: Task = "classification"
) -> dict[str, Any]:
    """Return the chosen settings, with values of the recipe for those that are missing or ``None``.

    Settings in neither of them are omitted and keep the defaults of their classes, except the number of networks.

    Args:
        chosen: Settings that take precedence over the recipe.
        recipe: Name of a recipe, or its settings.
        num_graphs: Number of training graphs.
        task: Kind of prediction. Label smoothing applies to classification only.
    """
    settings = {"n_estimators": N_ESTIMATORS, **recipe_of(recipe)}
    given = {name: value for name, value in chosen.items() if value is not None}
    if task != "classification":
        settings.pop("label_smoothing", None)
    fewest_steps, largest_work = (settings.pop(name, None) for name in RULES)
    epochs = settings.get("epochs", TrainConfig.epochs)
    if fewest_steps is not None:
        batches = ceil(num_graphs / (settings | given).get("batch_size", TrainConfig.batch_size))
        settings["epochs"] = epochs = max(epochs, ceil(fewest_steps / batches))
    if largest_work is not None:
        passes = largest_work // num_graphs  # over all networks together
        settings["n_estimators"] = max(1, min(settings["n_estimators"], passes // FEWEST_EPOCHS))
        affordable = max(FEWEST_EPOCHS, passes // (settings | given)["n_estimators"])
        if affordable < epochs:
            settings["epochs"] = affordable
            settings["batch_size"] = BATCH_GROWTH * settings.get("batch_size", TrainConfig.batch_size)
    return settings | given


def num_templates(settings: Mapping[str, Any], num_classes: int) -> int:
    """Return the number of templates of a network with these complete settings; regression counts as two classes."""
    chosen: int | None = settings.get("num_templates")
    if chosen is not None:
        return chosen
    per_class: int = settings.get("templates_per_class", TEMPLATES_PER_CLASS)
    return per_class * max(2, num_classes)


def _known() -> set[str]:
    settings = {field.name for kind in (TrainConfig, TFGWConfig) for field in fields(kind)} | {*RULES, *OTHERS}
    return settings - {"in_channels", "out_channels", "seed", "task"}

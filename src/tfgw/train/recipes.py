"""Recipes: how networks are trained and what their heads are, as data, the same for every network of the package.

A recipe gives values to settings: fields of :class:`TrainConfig`, arguments of :func:`tfgw.nn.heads.prediction_head`,
fields of :class:`tfgw.nn.TFGWConfig`, and :data:`OTHERS`. A network takes those that it knows; what a user sets comes
first. Settings that neither has keep the defaults of these classes, which are the paper's. docs/recipe.md tells how the
default was found.
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
    },
    "paper": {},
}
"""Epochs depend on the number of training graphs. ``fewest_steps``: small datasets, which have few batches, are trained
for more epochs, up to this number of steps. ``largest_work``: large ones are trained for fewer, such that epochs ×
graphs × networks are at most this number; where :data:`FEWEST_EPOCHS` would exceed it, there are fewer networks."""

RULES = ("fewest_steps", "largest_work")
OTHERS = ("n_estimators", "templates_per_class")
"""Settings that are neither of a network nor of its training: how many networks are trained and averaged, and how many
templates each has for every class."""
FEWEST_EPOCHS = 20
TEMPLATES_PER_CLASS = 4  # where a recipe has no number of its own, as the paper's


def recipe_of(recipe: str | Recipe) -> Recipe:
    """A recipe by its name; one that is given as settings stays as it is."""
    if isinstance(recipe, Mapping):
        unknown = sorted(recipe.keys() - _known())
        if unknown:
            raise ValueError(f"recipe: has {unknown[0]!r}, which is no setting of training or of a network")
        return recipe
    if not isinstance(recipe, str) or recipe not in RECIPES:
        raise ValueError(f"recipe: must be one of {', '.join(RECIPES)}, or a mapping of settings, got {recipe!r}")
    return RECIPES[recipe]


def complete(
    chosen: Mapping[str, Any], recipe: str | Recipe, *, num_graphs: int, task: Task = "classification"
) -> dict[str, Any]:
    """The chosen settings, and those of the recipe where one is missing or ``None``.

    Settings that neither has are left out: they keep the defaults of the classes that they are fields of.

    Args:
        chosen: Settings that come before those of the recipe.
        recipe: Name of a recipe, or its settings.
        num_graphs: Number of training graphs.
        task: What is learned; only classes have labels to smooth.
    """
    settings = dict(recipe_of(recipe))
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
        if "n_estimators" in settings:
            settings["n_estimators"] = max(1, min(settings["n_estimators"], passes // FEWEST_EPOCHS))
        networks = (settings | given).get("n_estimators", 1)
        settings["epochs"] = min(epochs, max(FEWEST_EPOCHS, passes // networks))
    return settings | given


def num_templates(settings: Mapping[str, Any], num_classes: int) -> int:
    """The number of templates of a network that complete settings describe; one of values has as many as for two
    classes."""
    chosen: int | None = settings.get("num_templates")
    if chosen is not None:
        return chosen
    per_class: int = settings.get("templates_per_class", TEMPLATES_PER_CLASS)
    return per_class * max(2, num_classes)


def _known() -> set[str]:
    return {field.name for kind in (TrainConfig, TFGWConfig) for field in fields(kind)} | {*RULES, *OTHERS}

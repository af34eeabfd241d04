"""Settings of a run from the options of ``tfgw train``.

What a user leaves out has the default of the models and of training, which are the paper's, or that of the recipe of a
generated dataset.
"""

from typing import Any

from tfgw.cli.option_defaults import FIELDS, TEMPLATES_PER_CLASS
from tfgw.datasets import GraphDataset, median_nodes
from tfgw.nn import TFGWConfig
from tfgw.train import TrainConfig, num_outputs
from tfgw.train.config import config_from

MODEL_OPTIONS = ("structure", "layers", "width", "alpha", "dropout", "starts", "start_kinds")
TRAINING_OPTIONS = ("epochs", "batch_size", "lr", "template_lr", "patience", "checkpoint_seconds", "stratified",
                    "precision", "accelerator", "devices")  # fmt: skip
LEARNED = "learned"

PAPER: dict[str, Any] = {
    **{option: getattr(TFGWConfig, FIELDS.get(option, option)) for option in MODEL_OPTIONS},
    **{option: getattr(TrainConfig, option) for option in TRAINING_OPTIONS},
    "alpha": LEARNED,
    "start_kinds": list(TFGWConfig.start_kinds),
}

# Regular graphs without features. Several starts, because the first is a saddle point for such graphs; slow
# templates, because they start at graphs of the classes, where they can hardly be better.
REGULAR = PAPER | {"layers": 0, "alpha": 1.0, "stratified": True, "template_lr": 0.001}

RECIPES: dict[str, dict[str, Any]] = {
    "SKIP-CIRCLES": REGULAR | {"starts": 4, "epochs": 20, "batch_size": 20},
    "4-CYCLES": REGULAR | {"starts": 8, "epochs": 200, "batch_size": 50},
}

FEWER_TEMPLATES_PER_CLASS = {"SKIP-CIRCLES": 1, "4-CYCLES": 2}


def complete(chosen: dict[str, Any], *, dataset: str, train: GraphDataset) -> dict[str, Any]:
    """The chosen options, and the dataset's recipe where an option is missing."""
    options = {**chosen, **{k: v for k, v in RECIPES.get(dataset, PAPER).items() if chosen.get(k) is None}}
    if options["task"] is None:
        options["task"] = "classification" if train.classes else "regression"
    if options["templates"] is None:
        per_class = FEWER_TEMPLATES_PER_CLASS.get(dataset, TEMPLATES_PER_CLASS)
        options["templates"] = per_class * max(2, train.num_classes)
    if options["template_nodes"] is None:
        options["template_nodes"] = median_nodes(train)
    return options


def model_config(options: dict[str, Any], train: GraphDataset) -> TFGWConfig:
    """The architecture that complete options describe."""
    return config_from(
        TFGWConfig,
        {FIELDS.get(option, option): value for option, value in options.items()},
        in_channels=train.num_node_features,
        out_channels=num_outputs(train, options["task"]),
        alpha=None if options["alpha"] == LEARNED else options["alpha"],
        learn_templates=not options["fixed_templates"],
        learn_weights=not (options["fixed_templates"] or options["fixed_weights"]),
        start_kinds=tuple(options["start_kinds"]),
    )


def train_config(options: dict[str, Any]) -> TrainConfig:
    """The training that complete options describe."""
    return config_from(TrainConfig, options)

"""Settings of a run from the options of ``tfgw train``.

Options that the user omits take the value of the recipe, then the default of the model and training settings, which are
those of the paper. Generated datasets have their own settings.
"""

from typing import Any

from tfgw.cli.option_defaults import FIELDS
from tfgw.datasets import GraphDataset
from tfgw.nn import TFGWConfig
from tfgw.train import Task, TrainConfig, num_outputs, recipes
from tfgw.train.config import config_from
from tfgw.train.template_size import default_template_nodes, number_of_templates

MODEL_OPTIONS = ("structure", "layers", "width", "alpha", "dropout", "starts", "start_kinds")
TRAINING_OPTIONS = ("epochs", "batch_size", "lr", "template_lr", "weight_decay", "label_smoothing", "patience",
                    "checkpoint_seconds", "stratified", "precision", "accelerator", "devices")  # fmt: skip
LEARNED = "learned"

PAPER: dict[str, Any] = {
    **{option: getattr(TFGWConfig, FIELDS.get(option, option)) for option in MODEL_OPTIONS},
    **{option: getattr(TrainConfig, option) for option in TRAINING_OPTIONS},
    "alpha": LEARNED,
    "start_kinds": list(TFGWConfig.start_kinds),
}

# Regular graphs without features. They need several starts, because the first is a saddle point. The templates learn
# slowly, because they are initialised with graphs of each class, which is already close to optimal.
REGULAR = {"layers": 0, "alpha": 1.0, "stratified": True, "template_lr": 0.001}

GENERATED: dict[str, dict[str, Any]] = {
    "SKIP-CIRCLES": REGULAR | {"starts": 4, "epochs": 20, "batch_size": 20},
    "4-CYCLES": REGULAR | {"starts": 8, "epochs": 200, "batch_size": 50},
}

FEWER_TEMPLATES_PER_CLASS = {"SKIP-CIRCLES": 1, "4-CYCLES": 2}
VALIDATION = {"default": 0.0, "paper": 0.1}


def with_recipe(chosen: dict[str, Any], *, dataset: str) -> dict[str, Any]:
    """Add the recipe and its share of validation graphs to the given options; the split depends on them."""
    recipe = chosen["recipe"] or ("paper" if dataset in GENERATED else "default")
    validation = VALIDATION[recipe] if chosen["validation"] is None else chosen["validation"]
    return chosen | {"recipe": recipe, "validation": validation}


def complete(chosen: dict[str, Any], *, dataset: str, train: GraphDataset) -> dict[str, Any]:
    """Return all options of a run, and the settings of its recipe that are not options."""
    task: Task = chosen["task"] or ("classification" if train.classes else "regression")
    # The number of epochs may depend on the training graphs.
    given = {"batch_size": chosen["batch_size"], "n_estimators": chosen.get("estimators")}
    recipe = recipes.complete(given, chosen.get("recipe", "paper"), num_graphs=len(train), task=task)
    options = PAPER | {_option(field): value for field, value in recipe.items()} | GENERATED.get(dataset, {})
    options |= {option: value for option, value in chosen.items() if value is not None or option not in options}
    options["task"] = task
    if options["templates"] is None:
        fewer = {"templates_per_class": FEWER_TEMPLATES_PER_CLASS[dataset]} if dataset in GENERATED else {}
        options["templates"] = number_of_templates(options | fewer, train.num_classes)
    if options["template_nodes"] is None:
        options["template_nodes"] = default_template_nodes(train)
    return options


def model_config(options: dict[str, Any], train: GraphDataset) -> TFGWConfig:
    """Return the architecture that the options describe."""
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
    """Return the training settings that the options describe."""
    return config_from(TrainConfig, options)


def _option(field: str) -> str:
    return next((option for option, name in FIELDS.items() if name == field), field)

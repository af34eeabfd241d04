"""Settings for the options that a user leaves out."""

from typing import Any

from tfgw.datasets import GraphDataset

PAPER: dict[str, Any] = {
    "structure": "adjacency",
    "layers": 2,
    "width": 16,
    "alpha": "learned",
    "dropout": 0.0,
    "starts": 1,
    "start_kinds": ["uniform", "anchored", "perturbed"],
    "epochs": 500,
    "batch_size": 128,
    "lr": 0.01,
    "template_lr": None,
    "patience": None,
    "checkpoint_seconds": 10.0,
    "stratified": False,
    "precision": "float64",
    "accelerator": "auto",
    "devices": 1,
}

# Regular graphs without features. Several starts, because the first is a saddle point for such graphs; slow
# templates, because they start at graphs of the classes, where they can hardly be better.
REGULAR = PAPER | {"layers": 0, "alpha": 1.0, "stratified": True, "template_lr": 0.001}

RECIPES: dict[str, dict[str, Any]] = {
    "SKIP-CIRCLES": REGULAR | {"starts": 4, "epochs": 20, "batch_size": 20},
    "4-CYCLES": REGULAR | {"starts": 8, "epochs": 200, "batch_size": 50},
}


def complete(chosen: dict[str, Any], *, dataset: str, train: GraphDataset) -> dict[str, Any]:
    """The chosen options, and the dataset's recipe where an option is missing."""
    options = {**chosen, **{k: v for k, v in RECIPES.get(dataset, PAPER).items() if chosen.get(k) is None}}
    if options["task"] is None:
        options["task"] = "classification" if train.classes else "regression"
    if options["templates"] is None:
        per_class = 1 if dataset == "SKIP-CIRCLES" else 2 if dataset == "4-CYCLES" else 4
        options["templates"] = per_class * max(2, train.num_classes)
    if options["template_nodes"] is None:
        sizes = sorted(graph.num_nodes for graph in train)
        options["template_nodes"] = sizes[len(sizes) // 2]
    return options

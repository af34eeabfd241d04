"""A trained model in one file, with all that is needed to use it on graphs as they were loaded."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfgw.datasets import GraphDataset
from tfgw.nn import Encoder, TFGWConfig, TFGWModel
from tfgw.train.evaluate import Evaluation, embeddings, evaluate, outputs
from tfgw.train.preprocessing import Preprocessing
from tfgw.train.tasks import Task, decide, probabilities
from tfgw.train.tensor_file import FileError, read_tensors, write_tensors

KIND = "model"


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A model and what it was trained for. Its methods take datasets as they were loaded.

    Args:
        model: The network.
        task: What it predicts.
        classes: Original label of each class; empty where it predicts values.
        preprocessing: What is done to graphs before the model sees them.
        source: Where the training graphs came from, as the user of this class likes to write it down (JSON).
    """

    model: TFGWModel
    task: Task
    classes: tuple[int | str, ...]
    preprocessing: Preprocessing
    source: dict[str, Any]

    def predict(self, dataset: GraphDataset) -> list[Any]:
        """The predicted label (or labels as 0/1, or values) of each graph."""
        decided = decide(self.task, self.outputs(dataset)).tolist()
        return [self.classes[number] for number in decided] if self.task == "classification" else decided

    def probabilities(self, dataset: GraphDataset) -> Tensor:
        """Probability of each class (or label), ``(num_graphs, num_classes)``."""
        return probabilities(self.task, self.outputs(dataset))

    def outputs(self, dataset: GraphDataset) -> Tensor:
        """What the network gives, ``(num_graphs, out_channels)``."""
        return outputs(self.model, self.preprocessing(dataset))

    def embed(self, dataset: GraphDataset) -> Tensor:
        """Distances to the templates, ``(num_graphs, num_templates)``."""
        return embeddings(self.model, self.preprocessing(dataset))

    def evaluate(self, dataset: GraphDataset) -> Evaluation:
        """Loss and score on labelled graphs, whose classes must be those of the training graphs."""
        if self.task == "classification" and not set(dataset.classes) <= set(self.classes):
            unknown = sorted(set(dataset.classes) - set(self.classes), key=str)
            raise ValueError(f"dataset: has classes that the model does not know: {', '.join(map(str, unknown))}")
        return evaluate(self.model, _renumbered(self.preprocessing(dataset), self.classes), task=self.task)


def save_model(trained: TrainedModel, path: Path) -> None:
    """Write ``trained`` to one safetensors file; nothing in it is pickled."""
    model = trained.model
    description = {
        "architecture": asdict(model.config),
        "own_encoder": type(model.encoder).__qualname__ if model.has_own_encoder else None,
        "dtype": str(model.pool.template_weights.dtype).removeprefix("torch."),
        "task": trained.task,
        "classes": list(trained.classes),
        "preprocessing": asdict(trained.preprocessing),
        "source": trained.source,
    }
    write_tensors(path, model.state_dict(), description, kind=KIND)


def load_model(path: Path, *, encoder: Encoder | None = None) -> TrainedModel:
    """Read a file that :func:`save_model` wrote.

    Args:
        path: The file.
        encoder: For a model that was built with an encoder of your own: one of the same architecture, whose
            weights are then replaced by those of the file.

    Raises:
        FileError: If the file is missing, cut, damaged, no model, or from a later version.
    """
    tensors, description = read_tensors(path, kind=KIND)
    if description["own_encoder"] and encoder is None:
        raise ValueError(f"encoder: missing, {path} was saved with a {description['own_encoder']}")
    architecture = description["architecture"]
    if "start_kinds" in architecture:  # JSON has no tuples
        architecture["start_kinds"] = tuple(architecture["start_kinds"])
    model = TFGWModel(TFGWConfig(**architecture), encoder=encoder)
    model.to(getattr(torch, description["dtype"]))
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise FileError(f"{path}: its weights do not fit the architecture") from error
    preprocessing = description["preprocessing"]
    for name in ("mean", "scale"):
        preprocessing[name] = tuple(preprocessing[name]) if preprocessing[name] is not None else None
    return TrainedModel(
        model=model.eval(),
        task=description["task"],
        classes=tuple(description["classes"]),
        preprocessing=Preprocessing(**preprocessing),
        source=description["source"],
    )


def _renumbered(dataset: GraphDataset, classes: tuple[Any, ...]) -> GraphDataset:
    """Classes of another dataset are numbered over its own labels; give them the model's numbers."""
    if dataset.classes == classes or dataset._data.y is None or not classes:
        return dataset
    number = torch.tensor([classes.index(label) for label in dataset.classes])
    graphs = [graph.clone() for graph in dataset]
    for graph in graphs:
        graph.y = number[graph.y]
    return GraphDataset.from_graphs(graphs, name=dataset.name, classes=classes)

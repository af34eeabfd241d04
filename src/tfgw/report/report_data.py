"""The graphs of a report, with the outputs of the model."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset
from tfgw.estimators.any_model import AnyModel, open_model
from tfgw.nn import KernelModel
from tfgw.nn.readout import from_square_roots
from tfgw.nn.threads import networks_on_one_thread
from tfgw.plot.drawing_data import DrawnGraph, NodeLooks, drawn_graph
from tfgw.report.kernel_view import KernelView, read_kernel
from tfgw.train import TrainedModel, probabilities
from tfgw.train.evaluate import evaluation_mode, readouts

TRAINING, TEST = "training", "test"


@dataclass(frozen=True)
class ReportData:
    """All graphs, part after part; arrays have one row per graph.

    Attributes:
        trained: The model.
        parts: Graphs as loaded, by part.
        prepared: Preprocessed graphs, by part.
        part: Name of the part of each graph.
        outputs: Outputs of the model, ``(graphs, outputs)``.
        distances: Distances to all templates, or to the landmarks of a kernel machine, ``(graphs, templates)``.
        y: Targets, ``(graphs,)`` class indices or ``(graphs, values)``; ``None`` if a part has none.
        kernel: Training graphs of a kernel machine; ``None`` for networks. The outputs for the training graphs of a
            kernel machine are those of leave-one-out.
    """

    trained: TrainedModel
    parts: Mapping[str, GraphDataset]
    prepared: Mapping[str, GraphDataset]
    part: np.ndarray
    outputs: np.ndarray
    distances: np.ndarray
    y: np.ndarray | None
    kernel: KernelView | None = None

    @classmethod
    def of(cls, trained: TrainedModel, parts: Mapping[str, GraphDataset]) -> "ReportData":
        """Apply the model to all graphs."""
        for dataset in parts.values():
            trained.check_encoding(dataset)
        known = {
            name: dataset if dataset.y is None else trained.with_own_classes(dataset) for name, dataset in parts.items()
        }
        prepared = {name: trained.preprocessing(dataset) for name, dataset in known.items()}
        targets = [dataset.y for dataset in prepared.values()]
        kernel = None
        if isinstance(trained.model, KernelModel):
            outputs, distances, kernel = read_kernel(trained.model, prepared, trained.task)
        else:
            read = [_outputs_and_distances(open_model(trained), dataset) for dataset in prepared.values()]
            outputs, distances = [found for found, _ in read], [distances for _, distances in read]
        return cls(
            trained=trained,
            parts=parts,
            prepared=prepared,
            part=np.repeat(list(parts), [len(dataset) for dataset in parts.values()]),
            outputs=np.concatenate(outputs),
            distances=np.concatenate(distances),
            y=_stacked(targets, is_class=trained.task == "classification"),
            kernel=kernel,
        )

    def __len__(self) -> int:
        return len(self.part)

    @property
    def model(self) -> AnyModel:
        """The common view of the model."""
        return open_model(self.trained)

    @property
    def measured(self) -> np.ndarray:
        """Whether each graph is used for evaluation: the test graphs, or all graphs if there are none."""
        is_test = self.part == TEST
        return is_test if is_test.any() else np.ones(len(self), dtype=bool)

    @cached_property
    def probabilities(self) -> np.ndarray:
        """Probabilities of classes or labels, ``(graphs, classes)``."""
        return probabilities(self.trained.task, torch.from_numpy(self.outputs)).numpy()

    @cached_property
    def class_names(self) -> list[str]:
        """Name of each output."""
        if self.trained.task == "classification":
            return [str(label) for label in self.trained.classes]
        noun = "label" if self.trained.task == "multilabel" else "value"
        return [f"{noun} {number}" for number in range(self.outputs.shape[1])]

    @cached_property
    def names(self) -> list[str]:
        """Name of each graph: its identifier, else its position in the dataset."""
        found: list[str] = []
        for name, dataset in self.parts.items():
            own = dataset.identifiers
            places = dataset.positions if own is None else own
            # Generated parts are each numbered from 0.
            prefix = f"{name} " if own is None and self._is_ambiguous else ""
            found += [f"{prefix}{place}" for place in places]
        return found

    @cached_property
    def groups(self) -> list[str]:
        """Colour group of each graph: class, set of labels, or tercile of the values."""
        values = self.outputs if self.y is None else self.y
        if self.trained.task == "classification":
            numbers = self.outputs.argmax(1) if self.y is None else self.y
            return [self.class_names[number] for number in numbers]
        if self.trained.task == "multilabel":
            threshold = 0.0 if self.y is None else 0.5
            return [", ".join(n for n, v in zip(self.class_names, row, strict=True) if v > threshold) or "no label"
                    for row in values]  # fmt: skip
        first = values.reshape(len(values), -1)[:, 0]
        low, high = np.quantile(first, [1 / 3, 2 / 3])
        return ["low third" if v < low else "high third" if v > high else "middle third" for v in first]

    @property
    def group_order(self) -> list[str]:
        """All groups, with classes in their order."""
        if self.trained.task == "classification":
            return self.class_names
        order = ["low third", "middle third", "high third"] if self.trained.task == "regression" else []
        return list(dict.fromkeys([*order, *sorted(self.groups)]))

    @property
    def right(self) -> np.ndarray | None:
        """Whether each prediction is correct; ``None`` for regression, or without targets."""
        if self.y is None or self.trained.task == "regression":
            return None
        if self.trained.task == "classification":
            return np.asarray(self.outputs.argmax(1) == self.y)
        return np.asarray(((self.outputs > 0) == (self.y > 0.5)).all(axis=1))

    def graph(self, number: int) -> Data:
        """Return a preprocessed graph."""
        name = str(self.part[number])
        return self.prepared[name][number - int(np.flatnonzero(self.part == name)[0])]

    def values(self, number: int) -> str:
        """Describe the prediction for a graph."""
        if self.trained.task == "classification":
            best = int(self.outputs[number].argmax())
            return f"{self.class_names[best]} ({100 * self.probabilities[number, best]:.0f} %)"
        if self.trained.task == "multilabel":
            shown = [f"{n} {100 * p:.0f} %" for n, p in zip(self.class_names, self.probabilities[number], strict=True)]
            return ", ".join(shown)
        return ", ".join(f"{value:.3g}" for value in self.predicted_values[number])

    @cached_property
    def predicted_values(self) -> np.ndarray:
        """Predicted values of a regression, in the units of the targets."""
        scaler = self.trained.target_scaler
        return self.outputs if scaler is None else scaler.restored(torch.from_numpy(self.outputs)).numpy()

    def truth(self, number: int) -> str | None:
        """Describe the true target of a graph."""
        if self.y is None:
            return None
        if self.trained.task == "classification":
            return self.class_names[int(self.y[number])]
        if self.trained.task == "multilabel":
            return self.groups[number]
        return ", ".join(f"{value:.3g}" for value in np.atleast_1d(self.y[number]))

    @property
    def _is_ambiguous(self) -> bool:
        places = [place for dataset in self.parts.values() for place in dataset.positions]
        return len(set(places)) < len(places)


def _outputs_and_distances(model: AnyModel, prepared: GraphDataset) -> tuple[np.ndarray, np.ndarray]:
    """Compute outputs and distances with a single solve."""
    outputs, distances = [], []
    for member in model.members:
        read = readouts(member, prepared)
        with evaluation_mode(member), networks_on_one_thread():
            outputs.append(member.head(read).double().cpu().numpy())
        near = read[:, : member.config.num_templates].double().cpu()
        distances.append((from_square_roots(near) if member.config.square_root else near).numpy())
    return np.mean(outputs, axis=0), np.concatenate(distances, axis=1)


def _stacked(targets: list[Any], *, is_class: bool) -> np.ndarray | None:
    if any(y is None for y in targets):
        return None
    if is_class:
        return np.concatenate([y.numpy() for y in targets])
    return np.concatenate([y.double().reshape(len(y), -1).numpy() for y in targets])


class Drawings:
    """Cached drawings of graphs; the layout takes longer than the drawing.

    Args:
        data: The graphs.
        looks: Names and colours of their nodes.
    """

    def __init__(self, data: ReportData, looks: NodeLooks) -> None:
        self.looks = looks
        self._data = data
        self._made: dict[int, DrawnGraph] = {}

    def __getitem__(self, number: int) -> DrawnGraph:
        if number not in self._made:
            self._made[number] = drawn_graph(self._data.graph(number), self.looks)
        return self._made[number]

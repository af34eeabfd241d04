"""A common view of trained models of any kind, for explanations, plots and reports."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch_geometric.data import Data

from tfgw.datasets import GraphDataset, NodeEncoding
from tfgw.estimators.graphs import as_dataset, as_graphs
from tfgw.nn import Ensemble, KernelModel, TFGWModel
from tfgw.nn.ensemble import members_of
from tfgw.nn.tfgw_pooling import Structure
from tfgw.train import Preprocessing, Task, TrainedModel
from tfgw.train.batches import OPTIONAL_INPUTS

INPUTS = ("x", "edge_index", *OPTIONAL_INPUTS)


class AnyModel(NamedTuple):
    """Attributes as in :class:`tfgw.train.TrainedModel`.

    Attributes:
        members: The networks; none for a kernel machine.
        kernel: The kernel machine; ``None`` for networks.
        dataset: Name of the training dataset; empty if unknown.
        takes_any_graph: Whether graphs may be of any kind that estimators accept, not only ``Data``.
    """

    members: tuple[TFGWModel, ...]
    task: Task = "classification"
    classes: tuple[Any, ...] = ()
    preprocessing: Preprocessing | None = None
    encoding: NodeEncoding | None = None
    dataset: str = ""
    takes_any_graph: bool = False
    kernel: KernelModel | None = None

    @property
    def networks(self) -> tuple[TFGWModel, ...]:
        """The networks. A kernel machine has none and raises an error."""
        if self.kernel is not None:
            raise ValueError("model: is a kernel machine, which has no learned templates; train a network")
        return self.members

    def graphs(self, graphs: Sequence[Any]) -> GraphDataset:
        """Convert graphs to a dataset, before preprocessing."""
        if self.takes_any_graph:
            structure, directed = self._compared_structure()
            converted = as_graphs(graphs, structure=structure, directed=directed)
            return as_dataset(_with_bonds(converted, graphs))
        if isinstance(graphs, GraphDataset):
            return graphs
        for graph in graphs:
            if not isinstance(graph, Data) or graph.x is None or graph.edge_index is None:
                raise ValueError(f"graph: expected a Data with x and edge_index, got {type(graph).__name__}")
        kept = [Data(**{key: graph[key] for key in INPUTS if graph.get(key) is not None}) for graph in graphs]
        return GraphDataset.stack(_with_bonds(kept, graphs), name="graphs")

    def _compared_structure(self) -> tuple[Structure, bool]:
        """Return the structure that the model compares, and whether it is directed."""
        if self.kernel is not None:
            return "adjacency", False
        config = self.members[0].config
        return config.structure, config.directed

    def prepare(self, dataset: GraphDataset) -> GraphDataset:
        """Preprocess the graphs for the networks."""
        return dataset if self.preprocessing is None else self.preprocessing(dataset)

    def output(self, target: Any) -> int | None:
        """Return the index of the output for a class."""
        if target is None or not self.classes:
            return None if target is None else int(target)
        if target not in self.classes:
            raise ValueError(f"target: must be one of {', '.join(map(str, self.classes))}, got {target!r}")
        return self.classes.index(target)


def _with_bonds(graphs: list[Data], given: Sequence[Any]) -> list[Data]:
    """Attach ``edge_attr`` if all graphs have it; plots use it, networks do not."""
    if all(isinstance(graph, Data) and graph.get("edge_attr") is not None for graph in given):
        for graph, other in zip(graphs, given, strict=True):
            graph.edge_attr = other.edge_attr
    return graphs


def open_model(model: Any) -> AnyModel:
    """Create the view of a trained model, a fitted estimator, a network or a kernel machine."""
    if isinstance(model, AnyModel):
        return model
    if isinstance(model, TFGWModel | Ensemble):
        return AnyModel(tuple(members_of(model)))
    if isinstance(model, KernelModel):
        return AnyModel((), kernel=model)
    trained, is_estimator = model, False
    if not isinstance(model, TrainedModel):
        trained, is_estimator = getattr(model, "trained_", None) if hasattr(model, "model_") else None, True
    if not isinstance(trained, TrainedModel):
        raise ValueError(
            "model: expected a trained model, a fitted TFGWClassifier, TFGWRegressor or kernel machine, a TFGWModel or"
            f" a KernelModel, got {type(model).__name__}"
        )
    kernel = trained.model if isinstance(trained.model, KernelModel) else None
    return AnyModel(
        members=() if kernel is not None else tuple(trained.members),
        task=trained.task,
        classes=trained.classes,
        preprocessing=trained.preprocessing,
        encoding=trained.encoding,
        dataset=str(trained.source.get("dataset", "")),
        takes_any_graph=is_estimator,
        kernel=kernel,
    )

"""The dataset that every loader returns."""

import hashlib
import warnings
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.data.collate import collate

from tfgw.datasets.features import as_floats
from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.node_encoding import NodeEncoding, UnseenLabels
from tfgw.datasets.targets import as_targets


class GraphDataset(InMemoryDataset):
    """Graphs for classification or regression, as PyTorch Geometric knows them.

    ``dataset[3]`` is a ``Data`` with ``x``, ``edge_index``, ``y`` (and ``edge_attr``, ``edge_weight`` where
    there are any); ``dataset[[0, 2]]``, ``dataset[:10]`` and boolean masks select graphs; ``DataLoader``
    takes it as it is. All graphs together are a few large tensors, of which the ``Data`` objects are views.

    Attributes:
        name: the dataset's name.
        classes: the original label of each class, so that ``classes[data.y]`` is what the source said; empty
            for regression.
        encoding: how ``x`` was made of what the source says about nodes; ``None`` where that is not known.
        unseen: labels of the source that ``encoding`` does not know; ``None`` where it knows all.
    """

    unseen: UnseenLabels | None = None

    def __init__(
        self,
        data: Data | dict[str, Tensor],
        slices: dict[str, Tensor],
        *,
        name: str,
        classes: Sequence[Any] = (),
        encoding: NodeEncoding | None = None,
        identifiers: Sequence[Any] | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self.classes = tuple(classes)
        self.encoding = encoding
        self._identifiers = None if identifiers is None else tuple(identifiers)
        self.slices = slices
        if isinstance(data, dict):
            del self.__dict__["_data"]
            self._tensors = data
        else:
            self._data = data

    def __getattr__(self, key: str) -> Any:
        # A ``Data`` of all graphs is made when first asked for: to make it takes longer than many a step on the way.
        if "_tensors" in self.__dict__:
            self._data = Data(**self.__dict__.pop("_tensors"))
            return getattr(self, key)
        return super().__getattr__(key)

    @property
    def stacked(self) -> dict[str, Any]:
        """The attributes of all graphs, each stacked; ``slices`` says where those of each graph begin."""
        return self._tensors if "_tensors" in self.__dict__ else self._data.to_dict()

    @classmethod
    def from_graphs(
        cls,
        graphs: Sequence[Data],
        *,
        name: str,
        classes: Sequence[Any] = (),
        encoding: NodeEncoding | None = None,
        identifiers: Sequence[Any] | None = None,
    ) -> "GraphDataset":
        """Stack graphs that are already complete: features in ``x``, classes from 0 in ``y``."""
        data, slices, _ = collate(Data, data_list=list(graphs), increment=False, add_batch=False)
        return cls(data, slices, name=name, classes=classes, encoding=encoding, identifiers=identifiers)

    @classmethod
    def stack(
        cls, graphs: Sequence[Data], y: Tensor | None = None, *, name: str, classes: Sequence[Any] = ()
    ) -> "GraphDataset":
        """The same, faster, of graphs whose attributes are all tensors and the same in each; ``y`` has a row for each.

        PyTorch Geometric's own function takes attributes of any kind, which for small graphs costs more than a solve.
        """
        stacked, slices = {}, {}
        attributes = [graph.to_dict() for graph in graphs]
        for key in attributes[0]:
            parts, axis = [graph[key] for graph in attributes], 1 if key == "edge_index" else 0
            stacked[key] = torch.cat(parts, dim=axis) if len(parts) > 1 else parts[0]
            slices[key] = torch.tensor([0, *accumulate(part.shape[axis] for part in parts)])
        if y is not None:
            stacked["y"], slices["y"] = y, torch.arange(len(graphs) + 1)
        return cls(stacked, slices, name=name, classes=classes)

    @property
    def num_classes(self) -> int:
        """Number of classes of the whole dataset, also on a part of it; 0 for regression."""
        return len(self.classes)

    @property
    def num_node_features(self) -> int:
        """Features per node; PyTorch Geometric takes a graph out of the dataset to count them."""
        x = self.stacked.get("x")
        return 0 if x is None else 1 if x.dim() == 1 else int(x.shape[-1])

    @property
    def y(self) -> Tensor | None:
        """The targets of the selected graphs, stacked; None for unlabelled graphs."""
        y = self.stacked.get("y")
        return y if y is None or self._indices is None else y[list(self._indices)]

    @property
    def positions(self) -> list[int]:
        """The place of each graph in the dataset that it was selected from."""
        return list(range(len(self)) if self._indices is None else map(int, self._indices))

    @property
    def identifiers(self) -> list[Any] | None:
        """What the source calls each of the selected graphs; ``None`` where it has no names for them."""
        return None if self._identifiers is None else [self._identifiers[place] for place in self.positions]

    def map(self, transform: Callable[[Data], Data]) -> "GraphDataset":
        """Apply ``transform`` to every graph once and keep the results."""
        return self._of_graphs([transform(graph) for graph in self])

    def with_node_features(self, change: Callable[[Tensor], Tensor]) -> "GraphDataset":
        """The same graphs with ``change(x)`` as features, where ``x`` stacks the nodes of all graphs."""
        dataset = self.with_tensors({"x": change(self.stacked["x"])})
        dataset.encoding = None
        return dataset

    def with_tensors(self, changed: dict[str, Tensor]) -> "GraphDataset":
        """The same graphs with other attributes, each of which stacks as many rows as before."""
        tensors = self.stacked | changed
        dataset = GraphDataset(
            tensors,
            self.slices,
            name=self.name,
            classes=self.classes,
            encoding=self.encoding,
            identifiers=self._identifiers,
        )
        dataset._indices = self._indices
        return dataset

    def with_values(self) -> "GraphDataset":
        """The same graphs with their labels as values to predict; a dataset without classes stays as it is.

        Raises:
            ValueError: If a label is no number.
        """
        if not self.classes:
            return self
        try:
            values = torch.tensor([*map(float, self.classes), torch.nan], dtype=torch.float64)  # −1 is not known
        except ValueError:
            raise ValueError(f"{self.name}: its labels are no numbers, so they cannot be predicted as values") from None
        changed = self.with_tensors({"y": values[self.stacked["y"]]})
        changed.classes = ()
        return changed

    def with_graph_values(self, key: str, values: Tensor) -> "GraphDataset":
        """The same graphs with one more attribute, of which each has one row; all graphs must be selected."""
        if self._indices is not None:
            raise ValueError(f"{key}: only part of the graphs is selected; compact the dataset first")
        dataset = self.with_tensors({key: values})
        dataset.slices = {**self.slices, key: torch.arange(len(self) + 1)}
        return dataset

    def compact(self) -> "GraphDataset":
        """A dataset of the selected graphs alone; itself, if all are selected."""
        return self if self._indices is None else self._of_graphs(list(self))

    def _of_graphs(self, graphs: list[Data]) -> "GraphDataset":
        """These graphs, which replace the selected ones, with what is known about those."""
        return self.from_graphs(
            graphs, name=self.name, classes=self.classes, encoding=self.encoding, identifiers=self.identifiers
        )

    def content_digest(self) -> str:
        """SHA-256 of structures and targets of all graphs, also of those that are not selected."""
        digest = hashlib.sha256(repr(self.classes).encode())
        for key in ("x", "edge_index", "y"):
            if key in self.slices:
                digest.update(self.slices[key].numpy().tobytes())
            if key != "x" and key in self.stacked:  # features depend on the encoding
                digest.update(self.stacked[key].contiguous().numpy().tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"GraphDataset({self.name!r}, graphs={len(self)}, classes={self.num_classes})"


def build_dataset(tables: GraphTables, *, name: str, encoding: NodeEncoding, part: bool = False) -> GraphDataset:
    """Turn tables into a dataset, by an encoding that may have been learned from others.

    Of a ``part`` of a dataset, ``unseen`` says what is unknown, and nothing is warned of or refused for it.
    """
    x, unseen = encoding.encode(tables, part=part)
    if unseen is not None and not part:
        warn_of_unseen(unseen, name)
    targets = as_targets(tables.targets)
    nodes, edges = _bounds(tables.node_counts), _bounds(tables.edge_counts)
    stored = {
        "x": (x, nodes),
        "edge_index": (torch.as_tensor(tables.edges, dtype=torch.long), edges),
        "edge_attr": (encoding.edges.encode(tables), edges),
        "edge_weight": (_edge_weights(tables), edges),
        "y": (targets.y, torch.arange(len(nodes))),
    }
    present = {key: pair for key, pair in stored.items() if pair[0] is not None}
    data = {key: tensor for key, (tensor, _) in present.items()}
    slices = {key: slice_ for key, (_, slice_) in present.items()}
    identifiers = None if tables.identifiers is None else tables.identifiers.tolist()
    dataset = GraphDataset(data, slices, name=name, classes=targets.classes, encoding=encoding, identifiers=identifiers)
    dataset.unseen = unseen
    return dataset


def warn_of_unseen(unseen: UnseenLabels, name: str) -> None:
    """Say what a dataset has that its encoding does not know."""
    warnings.warn(f"{name}: {unseen}; their one-hot features are all 0", stacklevel=4)


def _bounds(counts: Any) -> Tensor:
    """Where each of several consecutive runs starts, and the end of the last: PyTorch Geometric's slices."""
    bounds = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=bounds[1:])
    return torch.from_numpy(bounds)


def _edge_weights(tables: GraphTables) -> Tensor | None:
    if tables.edge_weights is None:
        return None
    return as_floats(tables.edge_weights, "weight of edge")

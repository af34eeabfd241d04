"""The dataset class of all loaders."""

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
    """A PyTorch Geometric dataset for classification or regression.

    ``dataset[3]`` is a ``Data`` with ``x``, ``edge_index``, ``y`` (and optionally ``edge_attr`` and ``edge_weight``);
    ``dataset[[0, 2]]``, ``dataset[:10]`` and boolean masks select graphs. It works with ``DataLoader``. All graphs are
    stored in a few large tensors, and ``Data`` objects are views of them.

    Attributes:
        name: Name of the dataset.
        classes: Original label of each class: ``classes[data.y]`` is the label in the source. Empty for regression.
        encoding: Encoding of node labels and attributes as ``x``; ``None`` if unknown.
        unseen: Labels of the source that ``encoding`` does not know; ``None`` if it knows all.
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
        # Create the ``Data`` of all graphs on first access, because this is slow.
        if "_tensors" in self.__dict__:
            self._data = Data(**self.__dict__.pop("_tensors"))
            return getattr(self, key)
        return super().__getattr__(key)

    @classmethod
    def of(cls, dataset: InMemoryDataset) -> "GraphDataset":
        """Return the graphs of any dataset of PyTorch Geometric that is in memory, without a copy."""
        if isinstance(dataset, GraphDataset):
            return dataset
        found = cls(dataset._data, dataset.slices, name=type(dataset).__name__)
        found._indices = dataset._indices
        return found

    @property
    def stacked(self) -> dict[str, Any]:
        """The concatenated attributes of all graphs; ``slices`` contains the start of each graph."""
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
        """Create a dataset from complete graphs: features in ``x``, classes from 0 in ``y``."""
        data, slices, _ = collate(Data, data_list=list(graphs), increment=False, add_batch=False)
        return cls(data, slices, name=name, classes=classes, encoding=encoding, identifiers=identifiers)

    @classmethod
    def stack(
        cls, graphs: Sequence[Data], y: Tensor | None = None, *, name: str, classes: Sequence[Any] = ()
    ) -> "GraphDataset":
        """Like :meth:`from_graphs`, but faster: all attributes are tensors, in all graphs the same; ``y`` has a row per
        graph.

        The function of PyTorch Geometric handles attributes of any type, which for small graphs takes longer than a
        solve.
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
        """Number of classes of the whole dataset, even for a selection; 0 for regression."""
        return len(self.classes)

    @property
    def num_node_features(self) -> int:
        """Number of features per node; faster than the method of PyTorch Geometric, which extracts a graph."""
        x = self.stacked.get("x")
        return 0 if x is None else 1 if x.dim() == 1 else int(x.shape[-1])

    @property
    def y(self) -> Tensor | None:
        """Targets of the selected graphs; ``None`` for unlabelled graphs."""
        y = self.stacked.get("y")
        return y if y is None or self.is_whole else y[self.positions]

    @property
    def node_features(self) -> Tensor:
        """Features of all nodes of the selected graphs, ``(num_nodes, num_node_features)``."""
        x = self.stacked["x"]
        if self.is_whole:
            return x
        starts = self.slices["x"].tolist()
        return torch.cat([x[:0], *(x[starts[place] : starts[place + 1]] for place in self.positions)])

    @property
    def node_counts(self) -> Tensor:
        """Number of nodes of each selected graph, ``(num_graphs,)``."""
        return self.slices["x"].diff()[self.positions]

    @property
    def is_whole(self) -> bool:
        """Whether all graphs are selected, in their order."""
        return self._indices is None

    @property
    def positions(self) -> list[int]:
        """Position of each selected graph in the whole dataset."""
        return [int(index) for index in self.indices()]

    @property
    def identifiers(self) -> list[Any] | None:
        """Identifiers of the selected graphs; ``None`` if the source has none."""
        return None if self._identifiers is None else [self._identifiers[place] for place in self.positions]

    def map(self, transform: Callable[[Data], Data]) -> "GraphDataset":
        """Apply ``transform`` to every graph once and keep the results."""
        return self._of_graphs([transform(graph) for graph in self])

    def with_node_features(self, change: Callable[[Tensor], Tensor]) -> "GraphDataset":
        """Return the graphs with ``change(x)`` as features, where ``x`` contains the nodes of all graphs."""
        dataset = self.with_tensors({"x": change(self.stacked["x"])})
        dataset.encoding = None
        return dataset

    def with_tensors(self, changed: dict[str, Tensor]) -> "GraphDataset":
        """Return the graphs with replaced attributes, which must have the same numbers of rows."""
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
        """Return the graphs with their labels as values to predict; a dataset without classes is returned unchanged.

        Raises:
            ValueError: If a label is not a number.
        """
        if not self.classes:
            return self
        try:
            values = torch.tensor([*map(float, self.classes), torch.nan], dtype=torch.float64)  # class −1 is unknown
        except ValueError:
            raise ValueError(
                f"{self.name}: its labels are not numbers, so they cannot be used for regression"
            ) from None
        changed = self.with_tensors({"y": values[self.stacked["y"]]})
        changed.classes = ()
        return changed

    def with_graph_values(self, key: str, values: Tensor) -> "GraphDataset":
        """Return the graphs with an additional attribute, one row per graph; all graphs must be selected."""
        if not self.is_whole:
            raise ValueError(f"{key}: only part of the graphs is selected; compact the dataset first")
        dataset = self.with_tensors({key: values})
        dataset.slices = {**self.slices, key: torch.arange(len(self) + 1)}
        return dataset

    def compact(self) -> "GraphDataset":
        """Return a dataset of only the selected graphs, or the dataset itself if all are selected."""
        return self if self.is_whole else self._of_graphs(list(self))

    def _of_graphs(self, graphs: list[Data]) -> "GraphDataset":
        """Return a dataset of these graphs with the metadata of this dataset."""
        return self.from_graphs(
            graphs, name=self.name, classes=self.classes, encoding=self.encoding, identifiers=self.identifiers
        )

    def content_digest(self) -> str:
        """Return the SHA-256 of structures and targets of all graphs, selected or not."""
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
    """Convert tables to a dataset, with an encoding that may be that of other graphs.

    For a ``part`` of a dataset, ``unseen`` contains the unknown labels, without a warning or an error.
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
    """Warn about labels of a dataset that its encoding does not know."""
    warnings.warn(f"{name}: {unseen}; their one-hot features are all 0", stacklevel=4)


def _bounds(counts: Any) -> Tensor:
    """Return the start of each of several consecutive runs, and the end of the last, as slices of PyTorch Geometric."""
    bounds = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=bounds[1:])
    return torch.from_numpy(bounds)


def _edge_weights(tables: GraphTables) -> Tensor | None:
    if tables.edge_weights is None:
        return None
    return as_floats(tables.edge_weights, "weight of edge")

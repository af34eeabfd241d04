"""Node encoding: fitted on one dataset, applied to others, and stored in model files."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from tfgw.datasets.edge_encoding import EdgeEncoding
from tfgw.datasets.features import DEFAULT_MAX_DEGREE, Features, as_floats, codes_in, decoded_labels, one_hot
from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.limits import check_array
from tfgw.datasets.typed_json import from_json

Kind = Literal["labels", "attributes", "both", "degree", "degree_scalar", "constant"]
Label = int | str

_SHOWN = 5
"""Maximum number of unseen labels to list."""


class UnseenLabels(NamedTuple):
    """Labels (or degrees) of new graphs that an encoding does not know."""

    what: str
    nodes: int
    of_nodes: int
    graphs: int
    labels: tuple[Label, ...]  # sorted

    def __str__(self) -> str:
        labels = ", ".join(map(str, self.labels[:_SHOWN])) + (", ..." if len(self.labels) > _SHOWN else "")
        graphs = f"{self.graphs} graph{'s' if self.graphs > 1 else ''}"
        return f"{self.nodes} of {self.of_nodes} nodes (in {graphs}) have a {self.what} unknown to the model: {labels}"

    def as_dict(self) -> dict[str, Any]:
        """Return JSON data with the first few labels and their number."""
        return self._asdict() | {"num_labels": len(self.labels), "labels": list(self.labels[:_SHOWN])}

    def merged(self, other: "UnseenLabels") -> "UnseenLabels":
        """Merge the unknown labels of two sets of graphs."""
        labels = {*self.labels, *other.labels}
        try:
            ordered = sorted(labels)
        except TypeError:  # integers and text cannot be compared
            ordered = sorted(labels, key=repr)
        return UnseenLabels(
            what=self.what,
            nodes=self.nodes + other.nodes,
            of_nodes=self.of_nodes + other.of_nodes,
            graphs=self.graphs + other.graphs,
            labels=tuple(ordered),
        )

    def check(self) -> None:
        """Raise ``ValueError`` if more than half of the nodes have unknown labels."""
        if 2 * self.nodes > self.of_nodes:
            raise ValueError(f"{self}; the graphs are of a different kind than the training graphs")


class Encoded(NamedTuple):
    """The (N, d) features of all nodes, in the default floating-point type of PyTorch, and their unknown labels."""

    x: Tensor
    unseen: UnseenLabels | None


@dataclass(frozen=True, kw_only=True)
class NodeEncoding:
    """Encoding of node labels, attributes or degrees as features.

    ======================  ===================================================================================
    ``"attributes"``        the real-valued node attributes only
    ``"labels"``            one-hot node labels
    ``"both"``              the attributes, then the one-hot labels
    ``"degree"``            one-hot degree; all degrees ≥ ``max_degree`` share the last column
    ``"degree_scalar"``     the degree as a number (its squared differences may dominate the structure term)
    ``"constant"``          the number 1
    ======================  ===================================================================================

    A label (or degree) that is not in the vocabulary has no column: its one-hot entries are all 0.

    Args:
        features: Kind of features.
        vocabulary: Sorted known labels of each label column, each with a one-hot column; with ``"degree"``, the known
            degrees.
        num_attributes: Number of attributes among the features.
        max_degree: Largest one-hot degree.
        edges: Encoding of ``edge_attr``. The models do not use it, so it is ignored when encodings are compared.
    """

    features: Kind
    vocabulary: tuple[tuple[Label, ...], ...] = ()
    num_attributes: int = 0
    max_degree: int | None = None
    edges: EdgeEncoding = field(default=EdgeEncoding(), compare=False)

    @classmethod
    def fit(
        cls, tables: GraphTables, *, features: Features = "auto", max_degree: int = DEFAULT_MAX_DEGREE
    ) -> "NodeEncoding":
        """Fit vocabularies and numbers of attributes.

        ``"auto"`` means ``"labels"``, ``"attributes"`` or ``"both"``, depending on what the nodes have, or ``"degree"``
        if they have neither.
        """
        if features not in get_args(Features):
            raise ValueError(f"features={features!r}: expected one of {', '.join(map(repr, get_args(Features)))}")
        kind = _automatic(tables) if features == "auto" else features
        encoding = cls(features=kind, edges=EdgeEncoding.fit(tables))
        if encoding.features == "degree":
            if max_degree < 1:
                raise ValueError(f"max_degree={max_degree}: must be at least 1")
            largest = min(int(tables.degrees().max()), max_degree)
            return replace(encoding, vocabulary=(tuple(range(largest + 1)),), max_degree=max_degree)
        if encoding.takes("labels"):
            columns = _present(tables.node_labels, "labels", features).T
            encoding = replace(encoding, vocabulary=tuple(tuple(np.unique(column).tolist()) for column in columns))
        if encoding.takes("attributes"):
            columns = _present(tables.node_attributes, "attributes", features).T
            encoding = replace(encoding, num_attributes=len(columns))
        return encoding

    @classmethod
    def from_dict(cls, entries: dict[str, Any]) -> "NodeEncoding":
        """Invert :meth:`as_dict`, also after a round trip through JSON.

        Raises:
            ValueError: If the entries are not a valid encoding.
        """
        encoding = from_json(cls, entries)
        for vocabulary in (encoding.vocabulary, encoding.edges.vocabulary):
            for known in vocabulary:
                if len(set(map(type, known))) != 1 or list(known) != sorted(set(known)):
                    raise ValueError("vocabulary: labels must be all integers or all text, sorted and unique")
        has_labels = encoding.takes("labels") or encoding.features == "degree"
        if bool(encoding.vocabulary) != has_labels or (encoding.max_degree is None) != (encoding.features != "degree"):
            raise ValueError(f"vocabulary: does not match the features {encoding.features!r}")
        return encoding

    def as_dict(self) -> dict[str, Any]:
        """Return the encoding as JSON data."""
        return asdict(self)

    def __str__(self) -> str:
        attributes = f"{self.num_attributes} node attributes"
        labels = f"{self.num_one_hot} one-hot node labels"
        return {
            "attributes": attributes,
            "labels": labels,
            "both": f"{attributes} and {labels}",
            "degree": f"one-hot degrees from 0 to {self.num_one_hot - 1}",
            "degree_scalar": "the degree as a number",
            "constant": "the constant 1",
        }[self.features]

    @property
    def num_one_hot(self) -> int:
        """Number of one-hot columns, which come after the attributes."""
        return sum(map(len, self.vocabulary))

    @property
    def num_columns(self) -> int:
        """Number of features of each node."""
        return 1 if self.features in ("degree_scalar", "constant") else self.num_attributes + self.num_one_hot

    def takes(self, table: Literal["labels", "attributes"]) -> bool:
        """Whether node labels, or node attributes, are among the features."""
        return self.features in (table, "both")

    def encode(self, tables: GraphTables, *, part: bool = False) -> Encoded:
        """Features of all nodes.

        Args:
            tables: The graphs.
            part: Whether these are a part of a dataset. Then the share of unknown labels is not checked.

        Raises:
            ValueError: If the graphs lack the labels or attributes of the encoding, or have a different number of them;
                if more than half of the nodes have unknown labels; or if the features exceed the memory limit.
        """
        nodes = int(tables.node_counts.sum())
        self._check_size(nodes)
        if self.features == "constant":
            return Encoded(torch.ones(nodes, 1), None)
        if self.features == "degree_scalar":
            return Encoded(as_floats(tables.degrees()[:, None], "degree of node"), None)
        parts = []
        if self.takes("attributes"):
            parts.append(as_floats(self._checked(tables, "attributes", self.num_attributes), "attributes of node"))
        if not self.vocabulary:
            return Encoded(parts[0], None)
        labels = self._labels(tables)
        codes = [codes_in(known, column) for known, column in zip(self.vocabulary, labels.T, strict=True)]
        unseen = self._unseen(tables, labels, np.stack(codes, axis=1) < 0)
        if unseen is not None and not part:
            unseen.check()
        parts += [one_hot(code, width=len(known)) for known, code in zip(self.vocabulary, codes, strict=True)]
        return Encoded(torch.cat(parts, dim=1) if len(parts) > 1 else parts[0], unseen)

    def check_columns(self, other: "NodeEncoding | None") -> None:
        """Raise ``ValueError`` if another encoding is known and has different columns."""
        if other is not None and other != self:
            raise ValueError(
                f"dataset: its features are {other}, but the model has {self}, with different columns; load the dataset"
                " with the model's method load, or with encoding="
            )

    def decode(self, x: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the node labels and attributes that the features ``x`` encode; ``None`` if they do not encode them.

        Raises:
            ValueError: If a row is not one-hot, because features were modified or encode unknown labels.
        """
        attributes = x[:, : self.num_attributes] if self.takes("attributes") else None
        if not self.takes("labels"):
            return None, attributes
        return decoded_labels(x[:, self.num_attributes :], self.vocabulary, name="x"), attributes

    def _check_size(self, nodes: int) -> None:
        instead = "'degree_scalar' or a smaller max_degree" if self.features == "degree" else "others, such as 'degree'"
        check_array(
            nodes,
            self.num_columns,
            itemsize=torch.get_default_dtype().itemsize,
            what=f"features {self.features!r} of nodes",
            instead=f"choose {instead}",
        )

    def _labels(self, tables: GraphTables) -> np.ndarray:
        """Return the labels or degrees to encode, (N, columns)."""
        if self.max_degree is not None:
            return tables.degrees().clip(max=self.max_degree)[:, None]
        return self._checked(tables, "labels", len(self.vocabulary))

    def _checked(self, tables: GraphTables, table: Literal["labels", "attributes"], columns: int) -> np.ndarray:
        found, other = tables.node_labels, tables.node_attributes
        if table == "attributes":
            found, other = other, found
        if found is None:
            present = "none" if other is None else f"only {'attributes' if table == 'labels' else 'labels'}"
            raise ValueError(f"the model requires node {table}, but the graphs have {present}")
        if found.shape[1] != columns:
            noun = f"column{'s' if columns > 1 else ''} of node {table}"
            raise ValueError(f"the model requires {columns} {noun}, but the graphs have {found.shape[1]}")
        return found

    def _unseen(self, tables: GraphTables, labels: np.ndarray, is_unseen: np.ndarray) -> UnseenLabels | None:
        nodes = np.flatnonzero(is_unseen.any(axis=1))
        if not nodes.size:
            return None
        graphs = np.repeat(np.arange(len(tables.node_counts)), tables.node_counts)[nodes]
        unknown = np.unique(labels[is_unseen])
        return UnseenLabels(
            what="label" if self.max_degree is None else "degree",
            nodes=len(nodes),
            of_nodes=len(labels),
            graphs=len(np.unique(graphs)),
            labels=tuple(unknown.tolist()),
        )


def _automatic(tables: GraphTables) -> Kind:
    if tables.node_labels is None:
        return "degree" if tables.node_attributes is None else "attributes"
    return "labels" if tables.node_attributes is None else "both"


def _present(table: np.ndarray | None, name: str, features: Features) -> np.ndarray:
    if table is None:
        raise ValueError(f"features={features!r}: the graphs have no node {name}")
    return table

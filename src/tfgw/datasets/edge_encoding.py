"""Encoding of edge labels and attributes as ``edge_attr``, stored with the node encoding."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tfgw.datasets.features import as_floats, codes_in, decoded_labels, one_hot
from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.limits import check_array


@dataclass(frozen=True, kw_only=True)
class EdgeEncoding:
    """The columns of ``edge_attr``: edge attributes, then one-hot edge labels.

    The models do not use ``edge_attr``, so graphs without it, or with unknown labels (whose one-hot entries are all 0),
    can be predicted.

    Args:
        vocabulary: Sorted known labels of each label column; each has a one-hot column.
        num_attributes: Number of attributes.
    """

    vocabulary: tuple[tuple[int | str, ...], ...] = ()
    num_attributes: int = 0

    @classmethod
    def fit(cls, tables: GraphTables) -> "EdgeEncoding":
        """Fit the vocabulary and the number of attributes."""
        labels, attributes = tables.edge_labels, tables.edge_attributes
        return cls(
            vocabulary=() if labels is None else tuple(tuple(np.unique(column).tolist()) for column in labels.T),
            num_attributes=0 if attributes is None else attributes.shape[1],
        )

    def encode(self, tables: GraphTables) -> Tensor | None:
        """Return ``edge_attr`` of all edges, or ``None`` if the graphs lack the labels or attributes."""
        labels, attributes = tables.edge_labels, tables.edge_attributes
        found = (0 if labels is None else labels.shape[1], 0 if attributes is None else attributes.shape[1])
        if found != (len(self.vocabulary), self.num_attributes) or found == (0, 0):
            return None
        check_array(
            tables.edges.shape[1],
            self.num_attributes + sum(map(len, self.vocabulary)),
            itemsize=torch.get_default_dtype().itemsize,
            what="attributes and one-hot labels of edges",
            instead="remove the file of edge labels",
        )
        parts = []
        if attributes is not None:
            parts.append(as_floats(attributes, "attributes of edge"))
        if labels is not None:
            columns = zip(self.vocabulary, labels.T, strict=True)
            parts += [one_hot(codes_in(known, column), width=len(known)) for known, column in columns]
        return torch.cat(parts, dim=1)

    def decode(self, edge_attr: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the edge labels and attributes that ``edge_attr`` encodes.

        Raises:
            ValueError: If a row is not one-hot, because it was modified or encodes unknown labels.
        """
        attributes = edge_attr[:, : self.num_attributes] if self.num_attributes else None
        return decoded_labels(edge_attr[:, self.num_attributes :], self.vocabulary, name="edge_attr"), attributes

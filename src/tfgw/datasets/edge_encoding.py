"""How edges become rows of numbers: learned with the encoding of nodes, and kept beside it."""

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

    The models here do not see them, so that graphs without them, or with labels that are not known (whose one-hot
    entries are all 0), can be predicted.

    Args:
        vocabulary: Known labels of each label column, sorted, each of which has a column.
        num_attributes: Number of attributes.
    """

    vocabulary: tuple[tuple[int | str, ...], ...] = ()
    num_attributes: int = 0

    @classmethod
    def fit(cls, tables: GraphTables) -> "EdgeEncoding":
        """Learn the vocabulary and the number of attributes."""
        labels, attributes = tables.edge_labels, tables.edge_attributes
        return cls(
            vocabulary=() if labels is None else tuple(tuple(np.unique(column).tolist()) for column in labels.T),
            num_attributes=0 if attributes is None else attributes.shape[1],
        )

    def encode(self, tables: GraphTables) -> Tensor | None:
        """``edge_attr`` of all edges; ``None`` where the graphs lack what the columns are made of."""
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
        """Edge labels and attributes that ``edge_attr`` was made of.

        Raises:
            ValueError: If a row is not one-hot: it was changed, or made of labels that are not known.
        """
        attributes = edge_attr[:, : self.num_attributes] if self.num_attributes else None
        return decoded_labels(edge_attr[:, self.num_attributes :], self.vocabulary, name="edge_attr"), attributes

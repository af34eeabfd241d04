"""Exact optimal transport between graphs and templates: batched, multi-threaded, differentiable.

>>> graphs = GraphBatch(x, batch=batch, edge_index=edge_index)     # as PyTorch Geometric batches them
>>> templates = Templates(features, structure=adjacency)           # (K, m, d) and (K, m, m)
>>> result = fgw(graphs, templates, alpha=0.5)
>>> result.distances                                               # (B, K), with gradients
>>> pairwise(dataset, alpha=0.5)                                   # (N, N), between all graphs of a dataset
"""

from tfgw.ot.diagnose import Diagnosis, diagnose
from tfgw.ot.inputs import GraphBatch, Templates
from tfgw.ot.nearest import Neighbours, nearest
from tfgw.ot.order import NodeOrder, canonical_order
from tfgw.ot.pairwise import pairwise
from tfgw.ot.solve import Status, Transport, fgw, linear_transport, wasserstein
from tfgw.ot.starts import START_KINDS

__all__ = [
    "START_KINDS",
    "Diagnosis",
    "GraphBatch",
    "Neighbours",
    "NodeOrder",
    "Status",
    "Templates",
    "Transport",
    "canonical_order",
    "diagnose",
    "fgw",
    "linear_transport",
    "nearest",
    "pairwise",
    "wasserstein",
]

"""Receptive fields of PATCHY-SAN: a fixed number of small, ordered neighbourhoods."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch_geometric.data import Data

from tfgw import ot
from tfgw.baselines.requirements import require
from tfgw.baselines.stacking import graph_of_each_node
from tfgw.datasets import CanonicalOrder


class Neighbourhood(NamedTuple):
    """Nodes near a root, with their distances to it."""

    nodes: np.ndarray
    distances: np.ndarray


def receptive_fields(graph: Data, *, num_fields: int, field_size: int, edge_channels: bool) -> torch.Tensor:
    """Compute one row per field, ``(num_fields, field_size · d [+ field_size² · a])``.

    A row contains the features of the nodes and, with ``edge_channels``, those of the edges between them (or 1 for an
    edge without features). Roots are the nodes with the largest betweenness. The nodes of a field are those nearest to
    its root, the most central first. Remaining ties are broken by a canonical labelling of the neighbourhood, so that
    fields do not depend on the numbering of nodes. Entries that a small graph cannot fill are 0.
    """
    graph = CanonicalOrder(edge_attr=edge_channels)(graph)
    betweenness = _betweenness(graph)
    neighbours = _neighbours(graph)
    roots = np.lexsort((np.arange(graph.num_nodes), -betweenness))[:num_fields]
    found = [_neighbourhood(int(root), neighbours, betweenness, field_size) for root in roots]
    fields = _ordered(found, graph, betweenness, field_size)
    x = graph.x.new_zeros(num_fields, field_size, graph.x.shape[1])
    for number, nodes in enumerate(fields):
        x[number, : len(nodes)] = graph.x[nodes]
    rows = x.flatten(1)
    return torch.cat([rows, _edge_rows(graph, fields, num_fields, field_size)], dim=1) if edge_channels else rows


def _betweenness(graph: Data) -> np.ndarray:
    """Return the betweenness, rounded so that rounding errors do not distinguish equivalent nodes."""
    source, target = graph.edge_index.numpy()
    edges = np.stack([source, target], axis=1)[source < target]
    values = require("igraph").Graph(n=graph.num_nodes, edges=edges.tolist()).betweenness()
    return np.round(np.array(values, dtype=np.float64), 6)


def _neighbours(graph: Data) -> list[np.ndarray]:
    source, target = graph.edge_index.numpy()
    order = np.argsort(source, kind="stable")
    return np.split(target[order], np.cumsum(np.bincount(source, minlength=graph.num_nodes))[:-1])


def _neighbourhood(root: int, neighbours: list[np.ndarray], betweenness: np.ndarray, size: int) -> Neighbourhood:
    """Collect nodes layer by layer until there are ``size``; of the last layer, keep only candidates."""
    seen, layer, distance = {root}, [root], 0
    nodes, distances = [root], [0]
    while len(nodes) < size and layer:
        distance += 1
        layer = sorted({int(node) for old in layer for node in neighbours[old]} - seen)
        seen.update(layer)
        nodes += layer
        distances += [distance] * len(layer)
    near, steps = np.array(nodes), np.array(distances)
    order = np.lexsort((-betweenness[near], steps))
    near, steps = near[order], steps[order]
    if len(near) > size:
        last = size - 1
        is_tied = (steps == steps[last]) & (betweenness[near] == betweenness[near[last]])
        keep = (np.arange(len(near)) < size) | is_tied
        near, steps = near[keep], steps[keep]
    return Neighbourhood(near, steps)


def _ordered(found: list[Neighbourhood], graph: Data, betweenness: np.ndarray, size: int) -> list[np.ndarray]:
    """Return the nodes of each field, ordered by distance, then betweenness, then canonical order."""
    tied = [field for field in found if _has_ties(field, betweenness)]
    places = iter(_canonical_places(tied, graph, betweenness)) if tied else iter(())
    fields = []
    for field in found:
        place = next(places) if _has_ties(field, betweenness) else np.arange(len(field.nodes))
        order = np.lexsort((place, -betweenness[field.nodes], field.distances))
        fields.append(field.nodes[order][:size])
    return fields


def _has_ties(field: Neighbourhood, betweenness: np.ndarray) -> bool:
    pairs = np.stack([field.distances, betweenness[field.nodes]], axis=1)
    return len(np.unique(pairs, axis=0)) < len(pairs)


def _canonical_places(fields: Sequence[Neighbourhood], graph: Data, betweenness: np.ndarray) -> list[np.ndarray]:
    """Return the position of each node in a canonical order of the induced subgraph, for each neighbourhood."""
    adjacency = np.zeros((graph.num_nodes, graph.num_nodes), dtype=bool)
    adjacency[graph.edge_index[0].numpy(), graph.edge_index[1].numpy()] = True
    sizes = [len(field.nodes) for field in fields]
    colours = [np.stack([field.distances, betweenness[field.nodes]], axis=1).astype(np.float64) for field in fields]
    first = np.cumsum(sizes) - sizes
    edges = [
        np.stack(np.nonzero(adjacency[np.ix_(field.nodes, field.nodes)])) + shift
        for field, shift in zip(fields, first, strict=True)
    ]
    problem = ot.GraphBatch(
        torch.from_numpy(np.concatenate(colours)),
        batch=graph_of_each_node(sizes),
        edge_index=torch.from_numpy(np.concatenate(edges, axis=1)),
    )
    places = ot.canonical_order(problem).order.argsort()
    return [part.numpy() for part in places.split(sizes)]


def _edge_rows(graph: Data, fields: list[np.ndarray], num_fields: int, size: int) -> torch.Tensor:
    values = graph.get("edge_attr")
    values = graph.x.new_ones(graph.num_edges, 1) if values is None else values.reshape(graph.num_edges, -1)
    number = np.full((graph.num_nodes, graph.num_nodes), -1)
    number[graph.edge_index[0].numpy(), graph.edge_index[1].numpy()] = np.arange(graph.num_edges)
    rows = graph.x.new_zeros(num_fields, size, size, values.shape[1])
    for field, nodes in enumerate(fields):
        edge = number[np.ix_(nodes, nodes)]
        i, j = np.nonzero(edge >= 0)
        rows[field, i, j] = values[edge[i, j]].to(rows)
    return rows.flatten(1)

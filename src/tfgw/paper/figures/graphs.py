"""Where the nodes of a graph are drawn, and its edges."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from sklearn.manifold import smacof


def circle_layout(nodes: int) -> np.ndarray:
    """On a circle, in their order."""
    angles = 2 * np.pi * np.arange(nodes) / nodes
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def cycle_layout(edge_index: np.ndarray, nodes: int) -> np.ndarray:
    """Disjoint cycles, each on a circle of its own, side by side."""
    neighbours: dict[int, list[int]] = {node: [] for node in range(nodes)}
    for source, target in edge_index.T.tolist():
        neighbours[source].append(target)
    places, left, cycles = np.zeros((nodes, 2)), set(range(nodes)), []
    while left:
        cycle = [min(left)]
        left.remove(cycle[0])
        while following := [node for node in neighbours[cycle[-1]] if node in left]:
            cycle.append(following[0])
            left.remove(following[0])
        cycles.append(cycle)
    left_end = 0.0
    for cycle in sorted(cycles, key=len):
        radius = len(cycle) / (2 * np.pi)  # edges have length 1
        places[cycle] = (left_end + radius, 0) + radius * circle_layout(len(cycle))
        left_end += 2 * radius + 0.5
    return places


def spread_layout(structure: np.ndarray) -> np.ndarray:
    """Nodes that strong edges join come close together: multidimensional scaling of path lengths.

    ``structure`` has entries from 0 (no edge) to 1; an edge of strength s has length 1 / s.
    """
    lengths = np.where(structure > 1e-3, 1 / np.maximum(structure, 1e-3), 0)
    distances = shortest_path(csr_array(lengths), directed=False)
    finite = distances[np.isfinite(distances)]
    distances = np.minimum(np.where(np.isfinite(distances), distances, finite.max() + 1), 12)
    places, _ = smacof(distances, init=_classical_scaling(distances), n_init=1)
    return np.asarray(places)


def _classical_scaling(distances: np.ndarray) -> np.ndarray:
    centring = np.eye(len(distances)) - 1 / len(distances)
    values, vectors = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    return vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-9))


def draw_edges(
    axis: Any, places: np.ndarray, edge_index: np.ndarray, *, width: float, shades: np.ndarray | None = None
) -> None:
    """Lines between nodes; ``shades`` from 0 (white) to 1 (black), strongest on top."""
    from matplotlib.collections import LineCollection

    once = edge_index[0] < edge_index[1]
    source, target = edge_index[:, once]
    strength = np.full(len(source), 0.6) if shades is None else np.clip(shades[once], 0, 1)
    order = np.argsort(strength)
    segments = np.stack([places[source], places[target]], axis=1)[order]
    colours = [(1 - s, 1 - s, 1 - s) for s in strength[order]]
    axis.add_collection(LineCollection(list(segments), colors=colours, linewidths=width, zorder=1))

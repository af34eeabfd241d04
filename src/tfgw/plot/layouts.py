"""Layouts of graphs."""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from sklearn.manifold import smacof

LARGEST_REFINED = 150
"""Maximum number of nodes for refinement of a layout, which takes a second for this many."""


LONGEST_EDGE = 4.0
"""Maximum length of an edge; longer edges would leave no room for the rest."""


def circle_layout(nodes: int) -> np.ndarray:
    """Place nodes on a circle, in their order."""
    angles = 2 * np.pi * np.arange(nodes) / nodes
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def cycle_layout(edge_index: np.ndarray, nodes: int) -> np.ndarray:
    """Place disjoint cycles side by side, each on its own circle."""
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
    """Place nodes with strong edges close together, by multidimensional scaling of path lengths.

    ``structure`` has entries from 0 (no edge) to 1; an edge of strength s has length 1 / s, or 4 if it is weaker.
    """
    if len(structure) == 1:
        return np.zeros((1, 2))
    lengths = np.where(structure > 1e-3, 1 / np.maximum(structure, 1 / LONGEST_EDGE), 0)
    distances = shortest_path(csr_array(lengths), directed=False)
    finite = distances[np.isfinite(distances)]
    distances = np.minimum(np.where(np.isfinite(distances), distances, finite.max() + 1), 12)
    start = _classical_scaling(distances)
    if len(structure) < 3 or len(structure) > LARGEST_REFINED:
        return start
    places, _ = smacof(distances, init=start, n_init=1, normalized_stress=False)
    return np.asarray(places)


def _classical_scaling(distances: np.ndarray) -> np.ndarray:
    centring = np.eye(len(distances)) - 1 / len(distances)
    values, vectors = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    return vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-9))


def molecule_layout(elements: Sequence[str], edges: np.ndarray, orders: np.ndarray) -> np.ndarray | None:
    """Return the layout of a molecule by RDKit, or ``None`` if RDKit is not installed or fails."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem import rdDepictor
    except ImportError:
        return None
    kinds = {1: Chem.BondType.SINGLE, 1.5: Chem.BondType.AROMATIC, 2: Chem.BondType.DOUBLE, 3: Chem.BondType.TRIPLE}
    molecule = Chem.RWMol()
    try:
        with rdBase.BlockLogs():
            for symbol in elements:
                molecule.AddAtom(Chem.Atom(symbol))
            for (source, target), order in zip(edges.T.tolist(), orders.tolist(), strict=True):
                molecule.AddBond(source, target, kinds.get(order, Chem.BondType.SINGLE))
            Chem.FastFindRings(molecule)
            rdDepictor.Compute2DCoords(molecule)
    except (RuntimeError, ValueError):
        return None
    return np.array(molecule.GetConformer().GetPositions())[:, :2]

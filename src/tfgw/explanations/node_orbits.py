"""Node orbits under the automorphisms of a graph, and means over them.

Two nodes are in the same orbit if the graph with the first node marked is isomorphic to the graph with the second node
marked, that is, if both are equal in canonical order. Only nodes that colour refinement cannot distinguish are
compared.
"""

import numpy as np
import torch
from torch import Tensor

from tfgw.ot import GraphBatch, canonical_order

MOST_ENTRIES = 2_000_000
"""Total size of all marked copies of a graph above which colour classes replace orbits. Colour classes are unions of
orbits: sums and equivariance still hold, but some nodes share contributions although no symmetry exchanges them."""


def node_orbits(x: Tensor, weights: Tensor, *matrices: Tensor) -> Tensor:
    """Return an orbit number per node, equal for nodes that a symmetry of features, weights and matrices exchanges."""
    attributes = torch.cat([x.double(), weights.double()[:, None]], dim=1)
    relations = _relations(matrices)
    colours = _colour_classes(attributes.numpy(), relations.numpy())
    alike = np.flatnonzero(np.bincount(colours)[colours] > 1)
    entries = len(x) + int((relations != 0).sum())
    if not len(alike) or len(alike) * entries > MOST_ENTRIES:
        return torch.from_numpy(colours)
    forms = dict(zip(alike.tolist(), _marked_forms(attributes, relations, alike), strict=True))
    keys = [(colours[node], forms.get(node)) for node in range(len(x))]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return torch.tensor([numbers[key] for key in keys])


def mean_over_orbits(values: Tensor, orbits: Tensor) -> Tensor:
    """Replace each entry of the last axis by the mean of its orbit, which preserves sums."""
    count = int(orbits.max()) + 1 if len(orbits) else 0
    sums = values.new_zeros(*values.shape[:-1], count).index_add_(-1, orbits, values)
    sizes = torch.bincount(orbits, minlength=count).to(values)
    return (sums / sizes)[..., orbits]


def pair_orbits(orbits: Tensor, *matrices: Tensor) -> Tensor:
    """Return an orbit number per pair of nodes, ``(n²,)``, equal if both orbits and all matrix entries are equal."""
    n = len(orbits)
    keys = torch.stack([orbits.repeat_interleave(n), orbits.repeat(n), _relations(matrices).flatten()], dim=1)
    return torch.unique(keys, dim=0, return_inverse=True)[1]


def _relations(matrices: tuple[Tensor, ...]) -> Tensor:
    """Combine matrices into one integer matrix: entries are equal where all matrices are, and 0 where all are 0."""
    stacked = torch.stack([matrix.double().flatten() for matrix in matrices], dim=1)
    rows = torch.cat([torch.zeros(1, stacked.shape[1], dtype=torch.float64), stacked])
    codes = torch.unique(rows, dim=0, return_inverse=True)[1]
    nothing = codes[0]
    codes = torch.where(codes == nothing, 0, codes + 1)
    return codes[1:].reshape(matrices[0].shape)


def _colour_classes(attributes: np.ndarray, relations: np.ndarray) -> np.ndarray:
    """Return the coarsest equitable partition: nodes of a class have equal attributes and equal links to each class."""
    colours = np.unique(attributes, axis=0, return_inverse=True)[1].ravel()
    both = relations * (relations.max() + 1) + relations.T
    while True:
        links = np.sort(both * (colours.max() + 1) + colours, axis=1)
        refined = np.unique(np.column_stack([colours, links]), axis=0, return_inverse=True)[1].ravel()
        if refined.max() == colours.max():
            return refined
        colours = refined


def _marked_forms(attributes: Tensor, relations: Tensor, nodes: np.ndarray) -> list[bytes]:
    """Return the canonical form of the graph with each of the nodes marked, as bytes."""
    n, copies = len(attributes), len(nodes)
    source, target = relations.nonzero().T
    shift = (torch.arange(copies) * n)[:, None]
    marks = torch.zeros(copies, n, dtype=torch.float64)
    marks[torch.arange(copies), torch.from_numpy(nodes)] = 1
    x = torch.cat([attributes.repeat(copies, 1), marks.reshape(-1, 1)], dim=1)
    edge_index = torch.stack([(source + shift).flatten(), (target + shift).flatten()])
    graphs = GraphBatch(
        x,
        batch=torch.arange(copies).repeat_interleave(n),
        edge_index=edge_index,
        edge_weight=relations[source, target].double().repeat(copies),
    )
    orders = canonical_order(graphs).order.reshape(copies, n) - shift
    marked = x.reshape(copies, n, -1)
    return [
        marked[copy][order].numpy().tobytes() + relations[order][:, order].numpy().tobytes()
        for copy, order in enumerate(orders)
    ]

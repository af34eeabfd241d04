"""Structure matrices of batched graphs, and the free entries of template structures."""

import torch
from torch import Tensor

from tfgw.datasets.structure import shortest_paths
from tfgw.ot.inputs import check_sorted


def batched_shortest_paths(
    edge_index: Tensor, num_nodes: int, batch: Tensor | None = None, edge_weight: Tensor | None = None
) -> Tensor:
    """Shortest-path matrices of all graphs of a batch, flattened one after the other, ``(sum of n²,)``."""
    if batch is None:
        batch = torch.zeros(num_nodes, dtype=torch.int64)
    check_sorted(batch)
    ptr = torch.cat([batch.new_zeros(1), batch.cpu().bincount().cumsum(0)]).tolist()
    owner = batch[edge_index[0]]
    order = owner.argsort(stable=True)
    edges, weights = edge_index[:, order], None if edge_weight is None else edge_weight[order]
    ends = owner.cpu().bincount(minlength=len(ptr) - 1).cumsum(0).tolist()
    blocks = []
    for first, last, begin, end in zip(ptr, ptr[1:], [0, *ends], ends, strict=False):
        block = shortest_paths(
            edges[:, begin:end] - first,
            last - first,
            edge_weight=None if weights is None else weights[begin:end],
        )
        blocks.append(block.flatten())
    return torch.cat(blocks).to(edge_index.device)


def entry_index(nodes: int, *, directed: bool, diagonal: bool) -> Tensor:
    """Return the index of the free entry at each position of an m × m matrix, ``(m, m)``. Positions that are fixed at 0
    get the index after the last free entry."""
    rows, cols = torch.meshgrid(torch.arange(nodes), torch.arange(nodes), indexing="ij")
    free = torch.ones(nodes, nodes, dtype=torch.bool)
    if not directed:
        free &= rows <= cols
    if not diagonal:
        free &= rows != cols
    index = torch.full((nodes, nodes), int(free.sum()), dtype=torch.int64)
    index[free] = torch.arange(int(free.sum()))
    return index if directed else torch.minimum(index, index.T)


def entry_places(index: Tensor, free: int) -> Tensor:
    """Return the first and last (flat) position of each free entry, ``(free, 2)``, given the index at each position."""
    order = index.argsort(stable=True)
    ends = torch.searchsorted(index[order], torch.arange(free + 1))
    return torch.stack((order[ends[:-1]], order[ends[1:] - 1]), 1)

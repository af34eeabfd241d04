"""From node features to one vector per graph."""

from torch import Tensor
from torch_geometric.nn import global_add_pool

from tfgw.nn.padding import current_padding


def sum_over_graphs(x: Tensor, batch: Tensor | None = None, batch_size: int | None = None) -> Tensor:
    """Sum of the rows of each graph, ``(batch_size, channels)``; the batch may be padded (:mod:`tfgw.nn.padding`)."""
    if current_padding() is None:
        return global_add_pool(x, batch, size=batch_size)
    if batch_size is None:
        raise ValueError("batch_size: missing; the graphs of a padded batch cannot be counted")
    return global_add_pool(x, batch, size=batch_size + 1)[:batch_size]  # the last sum is that of padding

"""Gather a padded batch from concatenated graphs with one CUDA kernel (ot/cuda/padded_batch.cuh)."""

import ctypes
from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from tfgw.nn.cuda import launching

THREADS = 256
"""Threads of a block."""
MAX_GRAPHS = 1024
"""Maximum number of graphs in a batch."""
MAX_BLOCKS = 256
"""Maximum number of blocks. Each finds the places of all graphs, so more of them do not make small batches faster."""


TENSORS = ("x", "edge_index", "edge_weight", "node_weights")
"""Tensors of a dataset; the last two are optional."""


class Spans(NamedTuple):
    """The rows of each graph in a dataset: their number, and the row after the last."""

    length: Tensor
    end: Tensor


class Gathered(NamedTuple):
    """A padded batch: the tensors that a model takes, and which rows are nodes.

    Attributes:
        tensors: ``x``, ``edge_index``, ``batch`` and, if the dataset has them, ``edge_weight`` and ``node_weights``.
        is_node: 1 for nodes and 0 for padding, ``(num_rows, 1)``.
        number: Number of nodes.
    """

    tensors: dict[str, Tensor]
    is_node: Tensor
    number: Tensor


class Padded(ctypes.Structure):
    """The argument of the kernel."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("graphs", "node_length", "node_end", "edge_length", "edge_end")),
        *((name, ctypes.c_void_p) for name in TENSORS),
        *((name, ctypes.c_void_p) for name in ("out_x", "out_edge_index", "out_batch")),
        *((name, ctypes.c_void_p) for name in ("out_edge_weight", "out_node_weights", "is_node", "number")),
        *((name, ctypes.c_int64) for name in ("graph_count", "node_rows", "edge_rows", "channels", "all_edges")),
    ]


def is_supported(dataset: Mapping[str, Tensor], graphs: Tensor) -> bool:
    """Whether the kernel can gather these graphs of a dataset."""
    x = dataset["x"]
    return len(graphs) <= MAX_GRAPHS and x.dim() == 2 and launching.is_supported(x)


def gather(
    dataset: Mapping[str, Tensor], nodes: Spans, edges: Spans, graphs: Tensor, node_rows: int, edge_rows: int
) -> Gathered:
    """Gather a padded batch.

    At least two trailing nodes are padding: their features are 0 and their graph is the number of graphs. Trailing
    edges are padding too; they lead through the nodes of padding.

    Args:
        dataset: The concatenated tensors of all graphs: ``x``, ``edge_index``, and optionally ``edge_weight`` and
            ``node_weights``.
        nodes: The nodes of each graph.
        edges: The edges of each graph.
        graphs: Indices of the graphs of the batch.
        node_rows: Nodes of the batch.
        edge_rows: Edges of the batch.
    """
    given = {key: dataset[key].contiguous() for key in TENSORS if key in dataset}
    x, edge_index = given["x"], given["edge_index"]
    out = {
        "x": x.new_empty(node_rows, x.shape[1]),
        "edge_index": edge_index.new_empty(2, edge_rows),
        "batch": graphs.new_empty(node_rows),
    }
    for key, rows in (("edge_weight", edge_rows), ("node_weights", node_rows)):
        if key in given:
            out[key] = x.new_empty(rows)
    is_node, number = x.new_empty(node_rows, 1), x.new_empty(())
    pointers = {key: tensor.data_ptr() for key, tensor in given.items()}
    pointers |= {f"out_{key}": tensor.data_ptr() for key, tensor in out.items()}
    padded = Padded(
        graphs=graphs.data_ptr(),
        node_length=nodes.length.data_ptr(),
        node_end=nodes.end.data_ptr(),
        edge_length=edges.length.data_ptr(),
        edge_end=edges.end.data_ptr(),
        is_node=is_node.data_ptr(),
        number=number.data_ptr(),
        graph_count=len(graphs),
        node_rows=node_rows,
        edge_rows=edge_rows,
        channels=x.shape[1],
        all_edges=edge_index.shape[1],
        **pointers,
    )
    blocks = min(MAX_BLOCKS, -(-max(node_rows * x.shape[1], edge_rows) // THREADS))
    launching.launch(f"tfgw_padded_batch_{launching.NAMES[x.dtype]}", blocks, THREADS, padded, x.device)
    return Gathered(out, is_node, number)

"""Read kernel machines from model files."""

from typing import Any

import torch
from torch import Tensor

from tfgw.datasets.typed_json import from_json
from tfgw.nn.kernel_model import KernelConfig, KernelModel, StackedGraphs


def kernel_model_from(tensors: dict[str, Tensor], entries: Any) -> KernelModel:
    """Create a kernel machine from the content of a file, which is not trusted.

    Raises:
        RuntimeError: If the sizes of tensors are inconsistent.
        ValueError: If values of tensors, or the ``entries`` of the description, are invalid.
    """
    config = from_json(KernelConfig, entries)
    graphs = StackedGraphs(
        *(tensors[f"graph_{name}"] for name in ("x", "edge_index", "batch")),
        *(tensors.get(f"graph_{name}") for name in ("edge_weight", "node_weights")),
    )
    fitted: dict[str, Any] = {
        name: tensors[name] for name in ("rates", "weights", "coefficients", "factor", "mean_distances", "left_out")
    }
    coefficients = fitted["coefficients"]
    distances = len(config.distances)
    if config.combine == "auto" or config.clustering is None:
        raise ValueError("how distances are combined was not chosen")
    count = distances if config.combine == "scores" else 1
    nodes, edges = len(graphs.batch), graphs.edge_index.shape[-1]
    expected = {
        "coefficients": (count, *coefficients.shape[1:2], config.out_channels),
        "rates": (count, distances),
        "weights": (count,),
        "factor": (),
        "mean_distances": (distances, *coefficients.shape[1:2]),
        "left_out": (*coefficients.shape[1:2], config.out_channels),
        "graph_x": (nodes, config.in_channels),
        "graph_edge_index": (2, edges),
        "graph_batch": (nodes,),
        "graph_edge_weight": (edges,),
        "graph_node_weights": (nodes,),
    }
    for name, tensor in tensors.items():
        is_index = name in ("graph_edge_index", "graph_batch")
        if tensor.dtype != (torch.int64 if is_index else torch.float64) or tensor.shape != expected.get(name):
            raise RuntimeError(f"{name}: {tensor.dtype} of shape {tuple(tensor.shape)} in a kernel machine")
    if not torch.equal(graphs.batch.unique_consecutive(), torch.arange(coefficients.shape[1])):
        raise RuntimeError("graphs without nodes or coefficients")
    if float(fitted["rates"].min()) < 0 or float(fitted["weights"].min()) < 0:
        raise ValueError("a negative rate of a distance or weight of a regression")
    if abs(float(fitted["weights"].sum()) - 1) > 1e-9:
        raise ValueError("weights of regressions that do not sum to 1")
    if edges and not 0 <= int(graphs.edge_index.min()) <= int(graphs.edge_index.max()) < nodes:
        raise ValueError("an edge to a node that is not there")
    return KernelModel(config, graphs, **fitted)

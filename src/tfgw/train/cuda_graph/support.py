"""Which models and data can be recorded, and why others cannot."""

from typing import Protocol, runtime_checkable

import torch
from torch import nn
from torch_geometric import nn as gnn

from tfgw.nn.padding import PaddedShape
from tfgw.train.cuda_graph.observers import has_observers
from tfgw.train.cuda_graph.padded_batches import lengths_of
from tfgw.train.cuda_graph.passes import Pass

ROW_WISE: set[type[nn.Module]] = {
    # independent rows
    nn.Identity, nn.Linear, nn.LayerNorm, nn.Dropout, nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.GELU, nn.SiLU,
    nn.Tanh, nn.Sigmoid, nn.Softplus, gnn.Linear, gnn.JumpingKnowledge,
    # containers
    nn.Sequential, nn.ModuleList, nn.ModuleDict,
    # rows and their incoming edges
    gnn.GINConv, gnn.GraphConv, gnn.SAGEConv, gnn.SumAggregation, gnn.MeanAggregation,
}  # fmt: skip
"""Modules of other packages that support padding but cannot declare it: the result for a row depends only on that row
and its incoming edges. Types must match exactly, because a subclass may compute something else. You can add types that
satisfy the contract in :mod:`tfgw.train.cuda_graph`."""


@runtime_checkable
class LimitedSupport(Protocol):
    """A module that supports padded batches with some settings or up to some size."""

    def unsupported_reason(self, shape: PaddedShape) -> str | None:
        """Why batches padded to this shape cannot be computed on that GPU; ``None`` if they can."""


def unsupported_reason(model: nn.Module, passes: list[Pass]) -> str | None:
    """Why steps of ``model`` in these passes cannot be recorded; ``None`` if they can."""
    return _data_reason(passes) or _module_reason(model) or _observer_reason(model) or _size_reason(model, passes)


def _data_reason(passes: list[Pass]) -> str | None:
    for one in passes:
        if torch.device(one.store.device).type != "cuda":
            return "the graphs are not on a GPU"
        if "y" not in one.store.tensors:
            return "the graphs have no targets"
        if "structure" in one.store.tensors:
            return "the graphs have structure matrices, which cannot be padded"
    return None


def _module_reason(model: nn.Module) -> str | None:
    for name, module in model.named_modules():
        # Not inherited: a subclass may compute something else.
        if type(module) not in ROW_WISE and not vars(type(module)).get("supports_padding", False):
            return f"{_describe(name, module)} does not declare that it supports padded batches"
    return None


def _observer_reason(model: nn.Module) -> str | None:
    return "hooks, tracing or anomaly detection observe its steps" if has_observers(model) else None


def _size_reason(model: nn.Module, passes: list[Pass]) -> str | None:
    for one in passes:
        device = torch.device(one.store.device)
        for size, capacity in one.capacities().items():
            shape = PaddedShape(device, size, capacity.nodes)
            for name, module in model.named_modules():
                reason = module.unsupported_reason(shape) if isinstance(module, LimitedSupport) else None
                if reason is not None:
                    return f"{_describe(name, module)}: {reason}"
        if _bytes(one) > torch.cuda.mem_get_info(device)[0] / 4:
            return "the graphs take more than a quarter of the GPU's free memory"
    return None


def _bytes(one: Pass) -> int:
    """Return the memory of the concatenated graphs: features, weight and graph of nodes; ends and weight of edges."""
    nodes, edges = (int(lengths.sum()) for lengths in lengths_of(one.store))
    return 8 * (nodes * (one.store.tensors["x"].shape[1] + 2) + 3 * edges)


def _describe(name: str, module: nn.Module) -> str:
    return f"{name or 'the model'} ({type(module).__name__})"

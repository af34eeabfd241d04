"""Random graphs and random models of every kind, with weights as if they had been trained."""

from typing import Any

import torch
from torch_geometric.data import Data

from tfgw.nn import TFGWConfig, TFGWModel

KINDS: dict[str, dict[str, Any]] = {
    "distances": {},
    "normalised": {"normalize": True},
    "sum": {"normalize": True, "readout": "distances+sum", "activation": True},
    "mean": {"readout": "distances+mean"},
    "roots": {"square_root": True, "normalize": True, "readout": "distances+sum"},
    "linear": {"hidden_layers": 0, "num_layers": 0},
    "paths": {"structure": "shortest_path"},
    "matrices": {"structure": "precomputed", "directed": True, "alpha_per_template": True},
    "structure alone": {"alpha": 1.0},
    "features alone": {"alpha": 0.0, "normalize": True},
    "several starts": {"n_starts": 3, "alpha_per_template": True},
}


def random_graph(generator: torch.Generator, *, nodes: int | None = None, matrix: bool = False) -> Data:
    """A random graph with 4 binary features; weighted nodes and edges, now and then."""
    n = int(torch.randint(2, 14, (1,), generator=generator)) if nodes is None else nodes
    upper = torch.rand(n, n, generator=generator).triu(1) > 0.65
    edge_index = (upper | upper.T).nonzero().T.contiguous()
    data = Data(x=(torch.rand(n, 4, generator=generator) > 0.5).double(), edge_index=edge_index)
    if matrix:
        data.structure = torch.randn(n * n, generator=generator, dtype=torch.float64)
    elif torch.rand(1, generator=generator) < 0.3:
        weights = torch.rand(n, n, generator=generator, dtype=torch.float64)
        data.edge_weight = (weights + weights.T)[edge_index[0], edge_index[1]]
    if torch.rand(1, generator=generator) < 0.3:
        weights = torch.rand(n, generator=generator, dtype=torch.float64) + 0.1
        data.node_weights = weights / weights.sum()
    return data


def random_model(kind: str, *, seed: int, outputs: int = 3) -> TFGWModel:
    """3 templates of 5 nodes, one of them without weight."""
    settings = {"in_channels": 4, "out_channels": outputs, "num_templates": 3, "template_nodes": 5, "width": 6}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = TFGWModel(TFGWConfig(**{**settings, **KINDS[kind]})).double()
        with torch.no_grad():
            model.pool.template_weights[1, 2] = 0
            model.pool.template_weights.div_(model.pool.template_weights.sum(1, keepdim=True))
            if model.pool.alpha.dim() == 1:
                model.pool.alpha.uniform_(0.1, 0.9)
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm1d):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2)
        for parameter in model.head.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    return model.eval()


def inputs_of(data: Data) -> dict[str, Any]:
    keys = ("x", "edge_index", "edge_weight", "structure", "node_weights")
    return {key: data[key] for key in keys if key in data}

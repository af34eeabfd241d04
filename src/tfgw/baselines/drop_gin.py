"""DropGIN: GIN on several copies of a graph, with random nodes dropped from each copy.

Papp, Martinkus, Faber, Wattenhofer: DropGNN: Random Dropouts Increase the Expressiveness of Graph Neural Networks.
NeurIPS 2021.
"""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack, cast

import torch
from torch import Tensor, nn
from torch_geometric.nn import global_add_pool

from tfgw.baselines.neural_baseline import NeuralBaseline
from tfgw.datasets import GraphDataset
from tfgw.nn import GINModel
from tfgw.nn.models import GIN_LAYERS, GINOptions
from tfgw.train import TrainConfig, num_outputs


@dataclass(kw_only=True, eq=False, repr=False)
class DropGIN(NeuralBaseline):
    """GIN whose node features are averaged over runs; in each run, the features of random nodes are set to 0.

    Nodes are dropped in predictions too, as in the original. A fitted model always draws the same numbers, so that
    equal calls give equal results. A permutation of the nodes does not change the distribution of the result, but may
    change the result.

    Training parameters and attributes are those of :class:`tfgw.estimators.TFGWClassifier`. Memory and time grow with
    ``num_runs`` × nodes.

    Args:
        num_layers: Number of GIN layers.
        width: Number of features per layer.
        dropout: Dropout rate of the head (default: as in the recipe).
        num_runs: Number of copies of each graph (default: the mean number of nodes m of the training graphs).
        drop_probability: Probability to drop a node in a run (default: 2/m, at most one half).
    """

    num_layers: int = GIN_LAYERS
    width: int = 32
    dropout: float | None = None
    num_runs: int | None = None
    drop_probability: float | None = None

    recipe_options: ClassVar = ("single_dropout", "hidden_layers", "normalize", "activation", "self_loops")

    def _new_network(self, train: GraphDataset, config: TrainConfig, settings: dict[str, Any]) -> "DropGINModel":
        nodes = sum(graph.num_nodes for graph in train) / len(train)
        runs = {
            "num_runs": round(nodes) if self.num_runs is None else self.num_runs,
            "drop_probability": min(2 / nodes, 0.5) if self.drop_probability is None else self.drop_probability,
            "seed": config.seed,
        }
        options = self._architecture(settings) | runs
        return DropGINModel(train.num_node_features, num_outputs(train, config.task), **options)


class DropGINModel(GINModel):
    """The network: the layers and head of GIN, with the same number of parameters.

    Args:
        in_channels: Features per node.
        out_channels: Number of classes.
        num_runs: Number of copies of each graph.
        drop_probability: Probability to drop a node in a run.
        seed: Random seed for dropped nodes in evaluation mode.
        **gin: Options of :class:`tfgw.nn.GINModel`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_runs: int = 50,
        drop_probability: float = 0.1,
        seed: int = 0,
        **gin: Unpack[GINOptions],
    ) -> None:
        super().__init__(in_channels, out_channels, **gin)
        if num_runs < 1:
            raise ValueError(f"num_runs: must be at least 1, got {num_runs}")
        if not 0 <= drop_probability < 1:
            raise ValueError(f"drop_probability: must be at least 0 and less than 1, got {drop_probability}")
        self.num_runs = num_runs
        self.drop_probability = drop_probability
        self.seed = seed

    def embed(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, *, batch_size: int | None = None
    ) -> Tensor:
        """Node features, averaged over the runs and summed over the nodes of each graph."""
        return global_add_pool(self._encode_runs(x, edge_index).mean(1), batch, size=batch_size)

    def _encode_runs(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Apply the layers of :class:`tfgw.nn.GINEncoder` to all runs at once, ``(num_nodes, num_runs, channels)``.

        A single sparse product sums over the neighbours in all runs. Explicit messages would need memory for edges ×
        runs × width numbers, 24 GB for a batch of COLLAB.
        """
        adjacency = _adjacency(edge_index, len(x)).to(x.dtype)
        levels = [x.unsqueeze(1) * self._is_kept(x).unsqueeze(2)]
        for conv, norm in zip(self.encoder.convs, self.encoder.norms, strict=True):
            last = levels[-1]
            summed = (adjacency @ last.flatten(1)).reshape(last.shape) + (1 + cast(Tensor, conv.eps)) * last
            rows = norm(cast(nn.Module, conv.nn)(summed.flatten(0, 1)))
            levels.append(rows.reshape(len(x), self.num_runs, -1))
        return torch.cat(levels, dim=-1)

    def _is_kept(self, x: Tensor) -> Tensor:
        generator = None if self.training else torch.Generator().manual_seed(self.seed)
        chance = torch.rand(len(x), self.num_runs, generator=generator)
        return (chance >= self.drop_probability).to(x)


def _adjacency(edge_index: Tensor, nodes: int) -> Tensor:
    """Return a sparse matrix with an entry (target, source) for each edge."""
    ones = torch.ones(edge_index.shape[1], device=edge_index.device)
    entries = torch.sparse_coo_tensor(edge_index.flip(0), ones, (nodes, nodes), check_invariants=False)
    with warnings.catch_warnings():  # PyTorch warns that CSR is in beta; it halves the time of the product
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        return entries.to_sparse_csr()

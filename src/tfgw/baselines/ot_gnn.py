"""OT-GNN: Wasserstein distances between node embeddings and learned point clouds.

Chen, Bécigneul, Ganea, Barzilay, Jaakkola: Optimal Transport Graph Neural Networks. arXiv 2006.04804, 2020.
"""

from dataclasses import dataclass

from torch import Tensor, nn
from torch_geometric.data import Data

from tfgw.baselines.neural import NeuralBaseline
from tfgw.datasets import GraphDataset
from tfgw.estimators.graphs import median_nodes
from tfgw.nn import GINEncoder, TWPooling, sample_templates
from tfgw.nn.models import prediction_head
from tfgw.train.trainer import DTYPES


@dataclass(kw_only=True, eq=False, repr=False)
class OTGNN(NeuralBaseline):
    """GIN, exact squared Wasserstein distances to learned clouds of points, and TFGW's head on the distances.

    The clouds start at the encoded nodes of training graphs, drawn class by class like TFGW's templates. Training
    parameters and attributes are those of :class:`tfgw.estimators.TFGWClassifier`.

    Args:
        num_templates: Number of clouds.
        template_nodes: Points per cloud; ``None``: the median number of nodes of the training graphs.
        num_layers: GIN layers.
        width: Features that each layer computes.
        dropout: Share of the head's hidden units that is dropped in training.
        learn_weights: Whether the points' weights are learned.
        num_threads: Threads of the solver; ``None`` follows :func:`torch.get_num_threads`.
    """

    num_templates: int = 16
    template_nodes: int | None = None
    num_layers: int = 2
    width: int = 16
    dropout: float = 0.0
    learn_weights: bool = True
    num_threads: int | None = None

    def _new_network(self, train: GraphDataset, out_channels: int, seed: int) -> "OTGNNModel":
        dtype = DTYPES[self.precision]
        model = OTGNNModel(
            train.num_node_features,
            out_channels,
            num_templates=self.num_templates,
            template_nodes=median_nodes(train) if self.template_nodes is None else self.template_nodes,
            num_layers=self.num_layers,
            width=self.width,
            dropout=self.dropout,
            learn_weights=self.learn_weights,
        ).to(dtype)
        model.pool.num_threads = self.num_threads
        graphs = [Data(x=graph.x.to(dtype), edge_index=graph.edge_index, y=graph.y) for graph in train]
        templates = sample_templates(
            graphs, self.num_templates, model.pool.template_nodes, encoder=model.encoder, seed=seed
        )
        model.pool.set_templates(templates.features)
        return model


class OTGNNModel(nn.Module):
    """The network; arguments as in :class:`OTGNN`."""

    supports_padding = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_templates: int,
        template_nodes: int,
        num_layers: int = 2,
        width: int = 16,
        dropout: float = 0.0,
        learn_weights: bool = True,
    ) -> None:
        super().__init__()
        self.encoder = GINEncoder(in_channels, width=width, num_layers=num_layers)
        self.pool = TWPooling(self.encoder.out_channels, num_templates, template_nodes, learn_weights=learn_weights)
        self.head = prediction_head(num_templates, out_channels, dropout=dropout)

    def embed(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, *, batch_size: int | None = None
    ) -> Tensor:
        """Distances to the clouds, ``(batch_size, num_templates)``."""
        distances: Tensor = self.pool(self.encoder(x, edge_index), batch, batch_size=batch_size)
        return distances

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, *, batch_size: int | None = None
    ) -> Tensor:
        """Class scores, ``(batch_size, out_channels)``."""
        scores: Tensor = self.head(self.embed(x, edge_index, batch, batch_size=batch_size))
        return scores

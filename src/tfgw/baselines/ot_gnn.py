"""OT-GNN: Wasserstein distances between node embeddings and learned point clouds.

Chen, Bécigneul, Ganea, Barzilay, Jaakkola: Optimal Transport Graph Neural Networks. arXiv 2006.04804, 2020.
"""

from dataclasses import dataclass

from torch import Tensor, nn
from torch_geometric.data import Data

from tfgw.baselines.neural_baseline import NeuralBaseline
from tfgw.datasets import GraphDataset, median_nodes
from tfgw.nn import GINEncoder, TFGWConfig, TWPooling, sample_templates
from tfgw.nn.models import prediction_head
from tfgw.train import TrainConfig, num_outputs
from tfgw.train.config import DTYPES


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
    num_layers: int = TFGWConfig.num_layers
    width: int = TFGWConfig.width
    dropout: float = TFGWConfig.dropout
    learn_weights: bool = TFGWConfig.learn_weights
    num_threads: int | None = None

    def _new_network(self, train: GraphDataset, config: TrainConfig) -> "OTGNNModel":
        points = median_nodes(train) if self.template_nodes is None else self.template_nodes
        encoder = GINEncoder(train.num_node_features, width=self.width, num_layers=self.num_layers)
        pool = TWPooling(encoder.out_channels, self.num_templates, points, learn_weights=self.learn_weights)
        pool.num_threads = self.num_threads
        dtype = DTYPES[config.precision]
        model = OTGNNModel(encoder, pool, num_outputs(train, config.task), dropout=self.dropout).to(dtype)
        graphs = [Data(x=graph.x, edge_index=graph.edge_index, y=graph.y) for graph in train]
        drawn = sample_templates(graphs, self.num_templates, points, encoder=encoder, dtype=dtype, seed=config.seed)
        pool.set_templates(drawn.features)
        return model


class OTGNNModel(nn.Module):
    """The network: encoder, distances to clouds of points, and TFGW's head."""

    supports_padding = True

    def __init__(
        self, encoder: GINEncoder, pool: TWPooling, out_channels: int, *, dropout: float = TFGWConfig.dropout
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.pool = pool
        self.head = prediction_head(pool.num_templates, out_channels, dropout=dropout)

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

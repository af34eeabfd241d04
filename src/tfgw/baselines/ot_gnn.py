"""OT-GNN: Wasserstein distances between node embeddings and learned point clouds.

Chen, Bécigneul, Ganea, Barzilay, Jaakkola: Optimal Transport Graph Neural Networks. arXiv 2006.04804, 2020.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from torch import Tensor, nn
from torch_geometric.data import Data

from tfgw.baselines.neural_baseline import NeuralBaseline
from tfgw.datasets import GraphDataset
from tfgw.nn import GINEncoder, TFGWConfig, TWPooling, sample_templates
from tfgw.nn.heads import HeadOptions, prediction_head
from tfgw.train import TrainConfig, num_outputs
from tfgw.train.config import DTYPES
from tfgw.train.template_size import default_template_nodes


@dataclass(kw_only=True, eq=False, repr=False)
class OTGNN(NeuralBaseline):
    """GIN, exact squared Wasserstein distances to learned point clouds, and the head of TFGW on the distances.

    The clouds are initialised with the encoded nodes of training graphs, sampled class by class like the templates of
    TFGW. Training parameters and attributes are those of :class:`tfgw.estimators.TFGWClassifier`.

    Args:
        num_templates: Number of point clouds.
        template_nodes: Points per cloud (default: the median number of nodes of the training graphs).
        num_layers: Number of GIN layers (default: as in the recipe).
        width: Number of features per layer (default: as in the recipe).
        dropout: Dropout rate of the head (default: as in the recipe).
        learn_weights: Whether to learn the weights of the points.
        num_threads: Number of solver threads (default: :func:`torch.get_num_threads`).
    """

    num_templates: int = 16
    template_nodes: int | None = None
    num_layers: int | None = None
    width: int | None = None
    dropout: float | None = None
    learn_weights: bool = TFGWConfig.learn_weights
    num_threads: int | None = None

    recipe_options: ClassVar = ("single_dropout", "hidden_layers", "normalize", "activation", "self_loops")

    def _new_network(self, train: GraphDataset, config: TrainConfig, settings: dict[str, Any]) -> "OTGNNModel":
        options = self._architecture(settings)
        points = options.pop("template_nodes", None) or default_template_nodes(train)
        outputs, dtype = num_outputs(train, config.task), DTYPES[config.precision]
        model = OTGNNModel(train.num_node_features, outputs, template_nodes=points, **options).to(dtype)
        graphs = [Data(x=graph.x, edge_index=graph.edge_index, y=graph.y) for graph in train]
        drawn = sample_templates(
            graphs, model.pool.num_templates, points, encoder=model.encoder, dtype=dtype, seed=config.seed
        )
        model.pool.set_templates(drawn.features)
        return model


class OTGNNModel(nn.Module):
    """The network: encoder, distances to point clouds, and the head of TFGW."""

    supports_padding = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_templates: int,
        template_nodes: int,
        num_layers: int = TFGWConfig.num_layers,
        width: int = TFGWConfig.width,
        activation: bool = TFGWConfig.activation,
        self_loops: bool = TFGWConfig.self_loops,
        learn_weights: bool = TFGWConfig.learn_weights,
        num_threads: int | None = None,
        **head: Unpack[HeadOptions],
    ) -> None:
        super().__init__()
        self.encoder = GINEncoder(
            in_channels, width=width, num_layers=num_layers, activation=activation, self_loops=self_loops
        )
        self.pool = TWPooling(
            self.encoder.out_channels,
            num_templates,
            template_nodes,
            learn_weights=learn_weights,
            num_threads=num_threads,
        )
        self.head = prediction_head(num_templates, out_channels, **head)

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

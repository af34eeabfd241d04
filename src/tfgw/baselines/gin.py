"""GIN: message passing as powerful as the Weisfeiler–Lehman test, with sum pooling.

Xu, Hu, Leskovec, Jegelka: How Powerful are Graph Neural Networks? ICLR 2019.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from tfgw.baselines.neural_baseline import NeuralBaseline
from tfgw.datasets import GraphDataset
from tfgw.nn import GINModel
from tfgw.nn.models import GIN_LAYERS
from tfgw.train import TrainConfig, num_outputs


@dataclass(kw_only=True, eq=False, repr=False)
class GIN(NeuralBaseline):
    """The GIN baseline of the paper: the layers and the head of TFGW, with sum pooling as readout.

    >>> GIN(epochs=100, random_state=0).fit(graphs, labels).predict(others)

    Training parameters and attributes are those of :class:`tfgw.estimators.TFGWClassifier`.

    Args:
        num_layers: Number of GIN layers.
        width: Number of features per layer (default: as in the recipe).
        dropout: Dropout rate of the head (default: as in the recipe).
    """

    num_layers: int = GIN_LAYERS
    width: int | None = None
    dropout: float | None = None

    recipe_options: ClassVar = ("single_dropout", "hidden_layers", "normalize", "activation", "self_loops")

    def _new_network(self, train: GraphDataset, config: TrainConfig, settings: dict[str, Any]) -> GINModel:
        options = self._architecture(settings)
        return GINModel(train.num_node_features, num_outputs(train, config.task), **options)

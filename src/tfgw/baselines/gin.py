"""GIN: message passing as strong as the Weisfeiler–Lehman test, and a sum over the nodes.

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
    """GIN as the paper compares with it: the layers and the head of TFGW, and the sum over nodes as readout.

    >>> GIN(epochs=100, random_state=0).fit(graphs, labels).predict(others)

    Training parameters and attributes are those of :class:`tfgw.estimators.TFGWClassifier`.

    Args:
        num_layers: GIN layers.
        width: Features that each layer computes; ``None``: as in the recipe.
        dropout: Share of the head's hidden units that is dropped in training; ``None``: as in the recipe.
    """

    num_layers: int = GIN_LAYERS
    width: int | None = None
    dropout: float | None = None

    recipe_options: ClassVar = ("hidden_layers", "normalize", "activation")

    def _new_network(self, train: GraphDataset, config: TrainConfig, settings: dict[str, Any]) -> GINModel:
        options = self._architecture(settings)
        return GINModel(train.num_node_features, num_outputs(train, config.task), **options)

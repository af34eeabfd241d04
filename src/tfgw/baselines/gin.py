"""GIN: message passing as strong as the Weisfeiler–Lehman test, and a sum over the nodes.

Xu, Hu, Leskovec, Jegelka: How Powerful are Graph Neural Networks? ICLR 2019.
"""

from dataclasses import dataclass

from tfgw.baselines.neural_baseline import NeuralBaseline
from tfgw.datasets import GraphDataset
from tfgw.nn import GINModel, TFGWConfig
from tfgw.nn.models import GIN_LAYERS
from tfgw.train import TrainConfig, num_outputs


@dataclass(kw_only=True, eq=False, repr=False)
class GIN(NeuralBaseline):
    """GIN as the paper compares with it: the layers and the head of TFGW, and the sum over nodes as readout.

    >>> GIN(epochs=100, random_state=0).fit(graphs, labels).predict(others)

    Training parameters and attributes are those of :class:`tfgw.estimators.TFGWClassifier`.

    Args:
        num_layers: GIN layers.
        width: Features that each layer computes.
        dropout: Share of the head's hidden units that is dropped in training.
    """

    num_layers: int = GIN_LAYERS
    width: int = TFGWConfig.width
    dropout: float = TFGWConfig.dropout

    def _new_network(self, train: GraphDataset, config: TrainConfig) -> GINModel:
        return GINModel(train.num_node_features, num_outputs(train, config.task), **self._architecture())

"""What the neural baselines share: the parameters of training, and plain undirected graphs as input."""

from dataclasses import dataclass, fields
from typing import Any

from torch_geometric.data import Data

from tfgw.estimators.neural_classifier import NeuralClassifier


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralBaseline(NeuralClassifier):
    """A network over the features and edges of undirected graphs, trained like :class:`tfgw.estimators.TFGWClassifier`.

    Args:
        standardize: Whether features are brought to mean 0 and variance 1 over the training graphs; ``None``: unless
            all are 0 or 1.
        epochs: Passes over the training graphs.
        batch_size: Graphs per optimiser step.
        lr: Learning rate of Adam.
        validation_fraction: Share of the graphs that is set aside to choose the epoch whose weights are kept; 0:
            those of the last epoch, unless ``fit`` is given graphs to choose it by.
        patience: Stop once no validation in this many epochs gave a model worth keeping; ``None``: never.
        precision: ``"float64"``, ``"float32"`` or ``"bf16"``.
        accelerator: Where to train: ``"cpu"``, ``"cuda"`` or ``"auto"``. A fitted classifier is on the CPU.
        random_state: Seed of weights, batches and validation graphs.
        verbose: Whether to show a progress bar.
    """

    structure = "adjacency"
    directed = False

    def _architecture(self) -> dict[str, Any]:
        """The parameters that a subclass has besides those of training: arguments of its network."""
        shared = {field.name for field in fields(NeuralBaseline)}
        return {name: value for name, value in self.get_params(deep=False).items() if name not in shared}

    def _as_graphs(self, X: Any) -> list[Data]:
        """Features and edges alone: no baseline knows what to do with weights of edges or nodes."""
        return [Data(x=graph.x, edge_index=graph.edge_index) for graph in super()._as_graphs(X)]

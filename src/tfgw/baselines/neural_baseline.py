"""Base class of neural baselines: training parameters, and undirected graphs as input."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from torch_geometric.data import Data

from tfgw.estimators.neural_classifier import NeuralClassifier
from tfgw.train.recipes import Recipe


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralBaseline(NeuralClassifier):
    """A network on the features and edges of undirected graphs, trained like :class:`tfgw.estimators.TFGWClassifier`.

    Args:
        standardize: Whether to scale features to mean 0 and variance 1 over the training graphs (default: unless all
            are 0 or 1).
        recipe: Training settings, as in :class:`tfgw.estimators.TFGWClassifier`. It also sets the following parameters
            if they are ``None``.
        n_estimators: Number of networks in the ensemble, whose outputs are averaged.
        epochs: Passes over the training graphs.
        batch_size: Graphs per optimiser step.
        lr: Learning rate of Adam; with a schedule, the maximum.
        weight_decay: Decoupled weight decay.
        label_smoothing: Label smoothing of the cross-entropy loss.
        class_weight: Weights of the classes in the loss: ``"balanced"``, a mapping of labels to weights, or ``None`` to
            weight all graphs equally.
        validation_fraction: Share of the graphs held out to select the best epoch. With 0, the weights of the last
            epoch are kept, unless ``fit`` is given validation graphs.
        patience: Number of epochs without improvement on the validation graphs after which training stops (default:
            never).
        precision: Precision of the network: ``"float64"``, ``"float32"`` or ``"bf16"``.
        accelerator: Device for training: ``"cpu"``, ``"cuda"`` or ``"auto"``. A fitted classifier is on the CPU.
        random_state: Random seed for weights, batches and validation graphs.
        verbose: Whether to show a progress bar.
    """

    original_settings: ClassVar[Recipe] = {}
    """Settings of the publication that differ from the recipe ``"paper"``, which is that of TFGW."""
    recipe_options: ClassVar[tuple[str, ...]] = ()
    """Arguments of the network that a recipe may set, besides the parameters of the class."""

    def _recipe(self) -> Recipe:
        return self.original_settings if self.recipe == "paper" else super()._recipe()

    def _architecture(self, settings: Recipe) -> dict[str, Any]:
        """Return the arguments of the network: additional parameters of a subclass, and settings from the recipe."""
        shared = {field.name for field in fields(NeuralBaseline)}
        own = {field.name for field in fields(self)} - shared
        return {name: value for name, value in settings.items() if name in own or name in self.recipe_options}

    def _as_graphs(self, X: Any) -> list[Data]:
        """Keep only features and edges, because the baselines do not support edge or node weights."""
        return [Data(x=graph.x, edge_index=graph.edge_index) for graph in super()._as_graphs(X)]

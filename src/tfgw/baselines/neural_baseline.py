"""What the neural baselines share: the parameters of training, and plain undirected graphs as input."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from torch_geometric.data import Data

from tfgw.estimators.neural_classifier import NeuralClassifier
from tfgw.train.recipes import Recipe


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralBaseline(NeuralClassifier):
    """A network over the features and edges of undirected graphs, trained like :class:`tfgw.estimators.TFGWClassifier`.

    Args:
        standardize: Whether features are brought to mean 0 and variance 1 over the training graphs; ``None``: unless
            all are 0 or 1.
        recipe: How to train, as in :class:`tfgw.estimators.TFGWClassifier`; it also decides the parameters below that
            are ``None``.
        n_estimators: Networks that are trained side by side, and whose outputs are averaged.
        epochs: Passes over the training graphs.
        batch_size: Graphs per optimiser step.
        lr: Learning rate of Adam; with a schedule, the largest.
        weight_decay: Decoupled weight decay.
        label_smoothing: Share of a target that is spread evenly over all classes.
        class_weight: How much each class counts in the loss: ``"balanced"``, a mapping of labels to weights, or
            ``None``: all graphs equally.
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

    original_settings: ClassVar[Recipe] = {}
    """Settings of the publication where they differ from those of the recipe ``"paper"``, which are TFGW's."""
    recipe_options: ClassVar[tuple[str, ...]] = ()
    """Arguments of the network that a recipe may have, besides the parameters of the class."""

    def _recipe(self) -> Recipe:
        return self.original_settings if self.recipe == "paper" else super()._recipe()

    def _architecture(self, settings: Recipe) -> dict[str, Any]:
        """Arguments of the network: the parameters that a subclass has besides those of training, and what it takes
        from the recipe."""
        shared = {field.name for field in fields(NeuralBaseline)}
        own = {field.name for field in fields(self)} - shared
        return {name: value for name, value in settings.items() if name in own or name in self.recipe_options}

    def _as_graphs(self, X: Any) -> list[Data]:
        """Features and edges alone: no baseline knows what to do with weights of edges or nodes."""
        return [Data(x=graph.x, edge_index=graph.edge_index) for graph in super()._as_graphs(X)]

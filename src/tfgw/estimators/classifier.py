"""Graph classification."""

import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tfgw.estimators.neural_classifier import NeuralClassifier
from tfgw.estimators.template_network import TemplateNetwork
from tfgw.train import Task, TrainedModel


@dataclass(kw_only=True, eq=False, repr=False)
class TFGWClassifier(NeuralClassifier, TemplateNetwork):
    """Template based graph neural network for classification, trained by ``fit``.

    >>> model = TFGWClassifier(num_templates=8, epochs=100, random_state=0).fit(graphs, ["ring", "star", ...])
    >>> model.predict(other_graphs)

    ``X`` is a list of graphs in any form that :func:`tfgw.estimators.as_graphs` accepts. ``y`` contains one label of
    any type per graph, or is a 0/1 matrix with one column per label (multi-label). Node features are used as given;
    encode categories as one-hot features. Nodes without features get the constant feature 1.

    For up to a few thousand graphs, :class:`TFGWKernelClassifier` is more accurate (docs/recipe.md). The network
    predicts faster, has few templates, and learns from any number of graphs.

    Args:
        num_templates: Number of templates per network. They are initialised with training graphs sampled from each
            class (default: two per class, four with ``recipe="paper"``).
        template_nodes: Nodes per template (default: the median size of the training graphs, at most 64).
        structure: Structure matrix of a graph: ``"adjacency"`` (entries of learned templates stay in [0, 1]),
            ``"shortest_path"``, or ``"precomputed"`` for matrices given with the graphs.
        directed: Whether the structures of graphs and templates may be asymmetric.
        num_layers: Number of GIN layers that encode the nodes; 0 compares the raw features. For this and the following
            parameters, ``None`` means the value of the recipe, else the default of :class:`tfgw.nn.TFGWConfig` or
            :class:`tfgw.train.TrainConfig`.
        width: Number of features per GIN layer.
        dropout: Dropout rate of the head.
        alpha: Trade-off between features (0) and structure (1) (default: learned).
        learn_templates: Whether template structures and features are learned.
        learn_weights: Whether template node weights are learned.
        n_starts: Number of solver starts per pair. Regular graphs without features need several.
        start_kinds: Kinds of starts: ``"uniform"``, ``"anchored"``, ``"perturbed"``; see :func:`tfgw.ot.fgw`.
        canonical_order: Whether to put nodes and edges into a canonical order, so that isomorphic graphs get the same
            output; see :class:`tfgw.datasets.CanonicalOrder`.
        standardize: Whether to scale features to mean 0 and variance 1 over the training graphs (default: unless all
            are 0 or 1).
        recipe: Settings of training and of the head: ``"default"``, tuned for accuracy on held-out graphs; ``"paper"``,
            as in the publication; or a mapping of settings, such as a modified copy of
            ``tfgw.train.recipes.RECIPES["default"]``. Other parameters take precedence over it.
        n_estimators: Number of networks in the ensemble, whose outputs are averaged. Each has its own templates
            (default: three, fewer for large datasets, one with ``recipe="paper"``).
        epochs: Passes over the training graphs. In the default recipe, they depend on the number of graphs.
        batch_size: Graphs per optimiser step.
        lr: Learning rate of Adam; with a schedule, the maximum.
        weight_decay: Decoupled weight decay of the encoder and the head.
        label_smoothing: Label smoothing of the cross-entropy loss.
        class_weight: Weights of the classes in the loss: ``"balanced"`` gives all classes the same total weight; a
            mapping gives the weight of each label (1 if missing); ``None`` weights all graphs equally.
        template_lr: Learning rate of the templates (default: ``lr``).
        stratified: Whether to draw batches with the class proportions of the training graphs.
        validation_fraction: Share of the graphs held out to select the best epoch. With 0, the model is trained on all
            graphs and keeps the weights of the last epoch, unless ``fit`` is given validation graphs.
        patience: Number of epochs without improvement on the validation graphs after which training stops (default:
            never).
        precision: Precision of the encoder and the head: ``"float64"``, ``"float32"`` or ``"bf16"``. The solver
            computes in float64.
        accelerator: Device for training: ``"cpu"``, ``"cuda"`` or ``"auto"``. A fitted estimator is on the CPU.
        num_threads: Number of solver threads (default: :func:`torch.get_num_threads`).
        random_state: Random seed for weights, templates, batches and validation graphs. An integer gives the same model
            on every call.
        verbose: Whether to show a progress bar.

    Attributes:
        classes_: Class labels; for multi-label targets, the column indices.
        model_: The trained :class:`tfgw.nn.TFGWModel`, or a :class:`tfgw.nn.Ensemble` of several.
        templates_: Templates of the model.
        history_: One :class:`tfgw.train.EpochRecord` per epoch.
        n_iter_: Number of epochs.
        alpha_: Trade-off between features and structure.
        num_parameters_: Number of learned parameters.
        validation_score_: Accuracy on the validation graphs at the selected epoch, if there were any. It was used to
            select the epoch, so it is a biased estimate of the accuracy on new graphs.
        n_features_in_: Number of features per node; 0 for graphs without features.
        preprocessing_: Preprocessing of graphs before they enter the model.
        encoding_: Node encoding of the dataset given to ``fit`` (:class:`tfgw.datasets.GraphDataset`), or ``None`` if
            unknown.
    """

    def _target(self) -> tuple[Task, tuple[Any, ...]]:
        return self._task, tuple(self.classes_.tolist()) if self._task == "classification" else ()

    @classmethod
    def _from_trained(cls, trained: TrainedModel, path: str | os.PathLike[str]) -> Self:
        if trained.task == "regression":
            raise ValueError(f"{path}: the model predicts values, not classes")
        estimator = super()._from_trained(trained, path)
        estimator._task = trained.task
        estimator.classes_ = np.array(trained.classes or range(trained.members[0].config.out_channels))
        return estimator

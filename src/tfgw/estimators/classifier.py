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

    ``X`` is a list of graphs in any form that :func:`tfgw.estimators.as_graphs` takes. ``y`` holds one label of any
    type per graph, or is a 0/1 matrix with a column for each of several labels (multi-label). Node features are
    used as they are (categories one-hot, say); nodes without any have the constant feature 1.

    Args:
        num_templates: Number of templates of each network; the training graphs they start at are drawn class by class.
            ``None``: two per class, with ``recipe="paper"`` four.
        template_nodes: Nodes per template; ``None``: the median of the training graphs, at most 64.
        structure: What graphs are compared by: ``"adjacency"`` (learned templates keep their entries in [0, 1]),
            ``"shortest_path"``, or ``"precomputed"`` for the matrices that come with the graphs.
        directed: Whether the structures of graphs and templates may be asymmetric.
        num_layers: Layers of the GIN that encodes the nodes; 0 compares the features as they are. ``None`` here and for
            the parameters below: as in the recipe, then as in :class:`tfgw.nn.TFGWConfig` and
            :class:`tfgw.train.TrainConfig`.
        width: Features that each layer computes.
        dropout: Share of the head's hidden units that is dropped in training.
        alpha: Trade-off between features (0) and structure (1); ``None``: learned.
        learn_templates: Whether template structures and features are learned.
        learn_weights: Whether template node weights are learned.
        n_starts: Starts of the solver for each pair. Regular graphs without features need several.
        start_kinds: What these may be: ``"uniform"``, ``"anchored"``, ``"perturbed"``; see :func:`tfgw.ot.fgw`.
        canonical_order: Whether nodes and edges are put in an order that does not depend on how they were numbered,
            so that isomorphic graphs get the same output; see :class:`tfgw.datasets.CanonicalOrder`.
        standardize: Whether features are brought to mean 0 and variance 1 over the training graphs; ``None``: unless
            all are 0 or 1.
        recipe: How to train, and the head of the network: ``"default"``, chosen for accuracy on graphs that the model
            has not seen; ``"paper"``, as in the publication; or a mapping of settings, such as a changed copy of
            ``tfgw.train.recipes.RECIPES["default"]``. Other parameters come before it.
        n_estimators: Networks that are trained side by side, each with templates of its own, and whose outputs are
            averaged; ``None``: three, for large datasets fewer, with ``recipe="paper"`` one.
        epochs: Passes over the training graphs; the default recipe's depend on their number.
        batch_size: Graphs per optimiser step.
        lr: Learning rate of Adam; with a schedule, the largest.
        weight_decay: Decoupled weight decay of the networks.
        label_smoothing: Share of a target that is spread evenly over all classes.
        class_weight: How much each class counts in the loss: ``"balanced"``, all classes equally, whatever their
            numbers of graphs; a mapping of labels to weights, 1 for those that it lacks; ``None``: all graphs equally.
        template_lr: Learning rate of the templates; ``None``: the same.
        stratified: Whether every batch has the class proportions of the training graphs.
        validation_fraction: Share of the graphs that is set aside to choose the epoch whose weights are kept; 0:
            those of the last epoch, trained on all graphs, unless ``fit`` is given graphs to choose it by.
        patience: Stop once no validation in this many epochs gave a model worth keeping; ``None``: never.
        precision: Of the networks: ``"float64"``, ``"float32"`` or ``"bf16"``. The solver computes in float64.
        accelerator: Where to train: ``"cpu"``, ``"cuda"`` or ``"auto"``. A fitted estimator is on the CPU.
        num_threads: Threads of the solver; ``None`` follows :func:`torch.get_num_threads`.
        random_state: Seed of weights, templates, batches and validation graphs. An integer gives the same model at
            every call.
        verbose: Whether to show a progress bar.

    Attributes:
        classes_: The labels; of multi-label targets, the numbers of the columns.
        model_: The trained :class:`tfgw.nn.TFGWModel`; of several, an :class:`tfgw.nn.Ensemble` with these as
            ``members``.
        templates_: Its templates.
        history_: One :class:`tfgw.train.EpochRecord` per epoch.
        n_iter_: Number of epochs.
        alpha_: Its trade-off between features and structure.
        num_parameters_: Numbers that are learned.
        validation_score_: Accuracy on the validation graphs at the kept epoch, where there were such graphs. It is what
            the epoch was chosen by, and no estimate of the accuracy on other graphs.
        n_features_in_: Features per node; 0 for graphs without.
        preprocessing_: What is done to graphs before the model sees them.
        encoding_: How the features of nodes were made of labels and attributes, if ``fit`` was given a dataset that
            says so (:class:`tfgw.datasets.GraphDataset`); ``None``: not known.
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

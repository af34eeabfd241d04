"""Whole models, from a batch of graphs to class scores or predicted values.

x, edge_index ─ encoder ─▶ node features ─ pooling ─▶ one vector per graph ─ head ─▶ outputs
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Unpack, cast, get_args

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tfgw.nn.encoders import Encoder, GINEncoder
from tfgw.nn.heads import HeadOptions, prediction_head
from tfgw.nn.readout import Readout, mean_over_graphs, square_roots, sum_over_graphs
from tfgw.nn.templates import sample_templates
from tfgw.nn.tfgw_pooling import GraphInputs, Structure, TFGWPooling
from tfgw.ot import START_KINDS
from tfgw.ot.problem import MAX_ITER, TOL

GIN_LAYERS = 4  # of the GIN baseline


@dataclass(frozen=True, kw_only=True)
class TFGWConfig:
    """The architecture of a :class:`TFGWModel`: everything but its weights.

    Args:
        in_channels: Features per node.
        out_channels: Number of classes, or of values to predict.
        num_templates: Number of templates K.
        template_nodes: Nodes per template.
        num_layers: Number of GIN layers L.
        width: Number of features per GIN layer.
        activation: Whether each GIN layer ends with a ReLU.
        self_loops: Whether GIN layers count every node as its own neighbour as well. The structure matrix of the
            pooling layer has no self-loops.
        dropout: Dropout rate of the head.
        single_dropout: Whether dropout follows only the first hidden layer of the head, instead of every hidden layer.
        hidden_layers: Number of hidden layers of the head.
        normalize: Whether to normalise each entry of the head's input to mean 0 and variance 1 over a batch.
        readout: Input of the head: ``"distances"``, or the distances and the sum or mean of the encoded nodes,
            ``"distances+sum"`` or ``"distances+mean"``.
        square_root: Whether to apply a square root to the distances before the head.
        structure: Kind of structure matrix. This and the following arguments are those of :class:`TFGWPooling`.
        directed: Whether templates may be asymmetric.
        free_diagonal: Whether the diagonal of the template structures is learned.
        alpha: Fixed trade-off between features (0) and structure (1). ``None`` learns it, starting at ``alpha_init``.
        alpha_init: Initial value of a learned α.
        alpha_per_template: Whether to learn a separate α for each template.
        learn_templates: Whether template structures and features are learned.
        learn_weights: Whether template node weights are learned.
        n_starts: Number of solver starts per pair.
        start_kinds: Kinds of starts.
        max_iter: Maximum number of solver iterations.
        tol: Relative gap at which the solver stops.
        training_tol: The same in training mode (default: ``tol``).
    """

    in_channels: int
    out_channels: int
    num_templates: int
    template_nodes: int
    num_layers: int = 2
    width: int = 16
    activation: bool = False
    self_loops: bool = False
    dropout: float = 0.0
    single_dropout: bool = False
    hidden_layers: int = 2
    normalize: bool = False
    readout: Readout = "distances"
    square_root: bool = False
    structure: Structure = "adjacency"
    directed: bool = False
    free_diagonal: bool = False
    alpha: float | None = None
    alpha_init: float = 0.5
    alpha_per_template: bool = False
    learn_templates: bool = True
    learn_weights: bool = True
    n_starts: int = 1
    start_kinds: tuple[str, ...] = START_KINDS
    max_iter: int = MAX_ITER
    tol: float = TOL
    training_tol: float | None = None

    def __post_init__(self) -> None:
        if self.readout not in get_args(Readout):
            raise ValueError(f"readout: must be one of {', '.join(get_args(Readout))}, got {self.readout!r}")

    @property
    def pooling(self) -> dict[str, Any]:
        """The settings that are arguments of :class:`TFGWPooling`."""
        names = [field.name for field in fields(self)]
        of_pooling = ["num_templates", "template_nodes", *names[names.index("structure") :]]
        return {name: getattr(self, name) for name in of_pooling}

    @property
    def encoder(self) -> dict[str, Any]:
        """The settings that are arguments of :class:`GINEncoder`."""
        names = ("num_layers", "width", "activation", "self_loops")
        return {name: getattr(self, name) for name in names}

    @property
    def head(self) -> HeadOptions:
        """The settings that are arguments of :func:`prediction_head`."""
        return {
            "dropout": self.dropout,
            "single_dropout": self.single_dropout,
            "hidden_layers": self.hidden_layers,
            "normalize": self.normalize,
        }


class GINOptions(HeadOptions, total=False):
    """Settings of :class:`GINModel`."""

    num_layers: int
    width: int
    activation: bool
    self_loops: bool


class TFGWModel(nn.Module):
    """The paper's model: GIN with Jumping Knowledge, distances to templates, and an MLP on the distances.

    >>> config = TFGWConfig(in_channels=7, out_channels=2, num_templates=8, template_nodes=17)
    >>> model = TFGWModel(config).init_templates(train_graphs, seed=0)
    >>> model(data.x, data.edge_index, data.batch)                 # (batch_size, 2)

    Args:
        config: The architecture.
        encoder: Replaces the GIN; ``num_layers`` and ``width`` are ignored.
        num_threads: Number of solver threads (default: :func:`torch.get_num_threads`).
    """

    supports_padding = True

    def __init__(self, config: TFGWConfig, *, encoder: Encoder | None = None, num_threads: int | None = None) -> None:
        super().__init__()
        self.config = config
        self.has_own_encoder = encoder is not None
        if encoder is None:
            encoder = GINEncoder(config.in_channels, **config.encoder)
        self.encoder = encoder
        self.pool = TFGWPooling(encoder.out_channels, num_threads=num_threads, **config.pooling)
        channels = config.num_templates + (0 if config.readout == "distances" else encoder.out_channels)
        self.head = prediction_head(channels, config.out_channels, **config.head)

    def init_templates(self, graphs: Sequence[Data], *, seed: int = 0) -> "TFGWModel":
        """Initialise the templates with encoded training graphs; see :func:`sample_templates`."""
        templates = sample_templates(
            graphs,
            self.config.num_templates,
            self.config.template_nodes,
            structure=self.config.structure,
            directed=self.config.directed,
            encoder=self.encoder,
            dtype=self.pool.template_features.dtype,
            seed=seed,
        )
        self.pool.set_templates(cast(Tensor, templates.structure), templates.features, templates.weights)
        return self

    def embed(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, **graphs: Unpack[GraphInputs]
    ) -> Tensor:
        """Distances to the templates, ``(batch_size, num_templates)``; see :meth:`TFGWPooling.forward`."""
        return self.pool(self.encoder(x, edge_index), edge_index, batch, **graphs)

    def readout(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, **graphs: Unpack[GraphInputs]
    ) -> Tensor:
        """Input of the head: the distances and the rest of ``config.readout``, ``(batch_size, channels)``."""
        encoded = self.encoder(x, edge_index)
        distances = self.pool(encoded, edge_index, batch, **graphs)
        if self.config.square_root:
            distances = square_roots(distances)
        if self.config.readout == "distances":
            return distances
        over_graphs = sum_over_graphs if self.config.readout == "distances+sum" else mean_over_graphs
        return torch.cat([distances, over_graphs(encoded, batch, graphs.get("batch_size"))], dim=1)

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, **graphs: Unpack[GraphInputs]
    ) -> Tensor:
        """Class scores (logits) or predicted values, ``(batch_size, out_channels)``."""
        return self.head(self.readout(x, edge_index, batch, **graphs))


class GINModel(nn.Module):
    """The GIN baseline of the paper: the same layers and head, with sum pooling as readout.

    Args:
        in_channels: Features per node.
        out_channels: Number of classes, or of values to predict.
        num_layers: Number of GIN layers.
        width: Number of features per layer.
        activation: Whether each layer ends with a ReLU.
        self_loops: Whether layers count every node as its own neighbour as well.
        **head: Options of :func:`prediction_head`.
    """

    supports_padding = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_layers: int = GIN_LAYERS,
        width: int = TFGWConfig.width,
        activation: bool = TFGWConfig.activation,
        self_loops: bool = TFGWConfig.self_loops,
        **head: Unpack[HeadOptions],
    ) -> None:
        super().__init__()
        self.encoder = GINEncoder(
            in_channels, width=width, num_layers=num_layers, activation=activation, self_loops=self_loops
        )
        self.head = prediction_head(self.encoder.out_channels, out_channels, **head)

    def embed(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, *, batch_size: int | None = None
    ) -> Tensor:
        """Sum of the node features of each graph."""
        return sum_over_graphs(self.encoder(x, edge_index), batch, batch_size)

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, *, batch_size: int | None = None
    ) -> Tensor:
        """Class scores (logits) or predicted values, ``(batch_size, out_channels)``."""
        return self.head(self.embed(x, edge_index, batch, batch_size=batch_size))

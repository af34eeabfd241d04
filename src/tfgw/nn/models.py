"""Whole models, from a batch of graphs to class scores or predicted values.

x, edge_index ─ encoder ─▶ node features ─ pooling ─▶ one vector per graph ─ head ─▶ outputs
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict, Unpack, cast

from torch import Tensor, nn
from torch_geometric.data import Data

from tfgw.nn.encoders import Encoder, GINEncoder
from tfgw.nn.linear import Linear, Perceptron
from tfgw.nn.readout import sum_over_graphs
from tfgw.nn.templates import sample_templates
from tfgw.nn.tfgw_pooling import Structure, TFGWPooling
from tfgw.ot import START_KINDS

HEAD_WIDTH = 128
GIN_LAYERS = 4  # of GIN alone


@dataclass(frozen=True, kw_only=True)
class TFGWConfig:
    """Everything that makes a :class:`TFGWModel` but its weights.

    Args:
        in_channels: Features per node.
        out_channels: Number of classes, or of values to predict.
        num_templates: Number of templates K.
        template_nodes: Nodes per template.
        num_layers: GIN layers L.
        width: Features that each GIN layer computes.
        dropout: Share of the head's hidden units that is dropped in training.
        structure: As in :class:`TFGWPooling`, like everything that follows.
        directed: Whether templates may be asymmetric.
        alpha: Fixed trade-off between features (0) and structure (1); ``None``: learned from ``alpha_init``.
        alpha_init: Where a learned α starts.
        alpha_per_template: Whether each template learns an α of its own.
        learn_templates: Whether template structures and features are learned.
        learn_weights: Whether template node weights are learned.
        n_starts: Starts of the solver for each pair.
        start_kinds: What these may be.
        max_iter: Largest number of iterations of the solver.
        tol: Relative gap at which the solver stops.
    """

    in_channels: int
    out_channels: int
    num_templates: int
    template_nodes: int
    num_layers: int = 2
    width: int = 16
    dropout: float = 0.0
    structure: Structure = "adjacency"
    directed: bool = False
    alpha: float | None = None
    alpha_init: float = 0.5
    alpha_per_template: bool = False
    learn_templates: bool = True
    learn_weights: bool = True
    n_starts: int = 1
    start_kinds: tuple[str, ...] = START_KINDS
    max_iter: int = 1000
    tol: float = 1e-9

    @property
    def pooling(self) -> dict[str, Any]:
        """The settings that are arguments of :class:`TFGWPooling`."""
        others = ("in_channels", "out_channels", "num_layers", "width", "dropout")
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in others}


class GraphInputs(TypedDict, total=False):
    """What graphs may have besides features and edges; see :meth:`TFGWPooling.forward`."""

    edge_weight: Tensor | None
    structure: Tensor | None
    node_weights: Tensor | None
    batch_size: int | None


class GINOptions(TypedDict, total=False):
    """Settings of :class:`GINModel`."""

    num_layers: int
    width: int
    dropout: float


class TFGWModel(nn.Module):
    """The paper's model: GIN with Jumping Knowledge, distances to templates, a perceptron on the distances.

    >>> config = TFGWConfig(in_channels=7, out_channels=2, num_templates=8, template_nodes=17)
    >>> model = TFGWModel(config).init_templates(train_graphs, seed=0)
    >>> model(data.x, data.edge_index, data.batch)                 # (batch_size, 2)

    Args:
        config: The architecture.
        encoder: Replaces the GIN; ``num_layers`` and ``width`` are ignored.
    """

    supports_padding = True

    def __init__(self, config: TFGWConfig, *, encoder: Encoder | None = None) -> None:
        super().__init__()
        self.config = config
        self.has_own_encoder = encoder is not None
        if encoder is None:
            encoder = GINEncoder(config.in_channels, width=config.width, num_layers=config.num_layers)
        self.encoder = encoder
        self.pool = TFGWPooling(encoder.out_channels, **config.pooling)
        self.head = prediction_head(config.num_templates, config.out_channels, dropout=config.dropout)

    def init_templates(self, graphs: Sequence[Data], *, seed: int = 0) -> "TFGWModel":
        """Put the templates at encoded training graphs; see :func:`sample_templates`."""
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

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, **graphs: Unpack[GraphInputs]
    ) -> Tensor:
        """Class scores (logits) or predicted values, ``(batch_size, out_channels)``."""
        return self.head(self.embed(x, edge_index, batch, **graphs))


class GINModel(nn.Module):
    """GIN as the paper compares with it: the same layers and head, and the sum over nodes as readout.

    Args:
        in_channels: Features per node.
        out_channels: Number of classes, or of values to predict.
        num_layers: GIN layers.
        width: Features that each layer computes.
        dropout: Share of the head's hidden units that is dropped in training.
    """

    supports_padding = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_layers: int = GIN_LAYERS,
        width: int = TFGWConfig.width,
        dropout: float = TFGWConfig.dropout,
    ) -> None:
        super().__init__()
        self.encoder = GINEncoder(in_channels, width=width, num_layers=num_layers)
        self.head = prediction_head(self.encoder.out_channels, out_channels, dropout=dropout)

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


def prediction_head(in_channels: int, out_channels: int, *, dropout: float) -> Perceptron:
    """The paper's ψ: two hidden layers of 128."""
    if out_channels < 1:
        raise ValueError(f"out_channels: must be at least 1, got {out_channels}")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout: must be at least 0 and below 1, got {dropout}")
    return Perceptron(
        Linear(in_channels, HEAD_WIDTH),
        nn.ReLU(),
        nn.Dropout(dropout),
        Linear(HEAD_WIDTH, HEAD_WIDTH),
        nn.ReLU(),
        nn.Dropout(dropout),
        Linear(HEAD_WIDTH, out_channels),
    )

"""Whole models, from a batch of graphs to class scores or predicted values.

x, edge_index ─ encoder ─▶ node features ─ pooling ─▶ one vector per graph ─ head ─▶ outputs
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict, Unpack, cast, get_args

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tfgw.nn.encoders import Encoder, GINEncoder
from tfgw.nn.heads import HeadOptions, prediction_head
from tfgw.nn.readout import Readout, mean_over_graphs, sum_over_graphs
from tfgw.nn.templates import sample_templates
from tfgw.nn.tfgw_pooling import Structure, TFGWPooling
from tfgw.ot import START_KINDS

GIN_LAYERS = 4  # of GIN alone
ROOT_OFFSET = 1e-6  # keeps the slope of the square root finite at distance 0


@dataclass(frozen=True, kw_only=True)
class TFGWConfig:
    """The architecture of a :class:`TFGWModel`: everything but its weights.

    Args:
        in_channels: Features per node.
        out_channels: Number of classes, or of values to predict.
        num_templates: Number of templates K.
        template_nodes: Nodes per template.
        num_layers: GIN layers L.
        width: Features that each GIN layer computes.
        activation: Whether each GIN layer ends with a ReLU.
        dropout: Share of the head's hidden units that is dropped in training.
        hidden_layers: Hidden layers of the head.
        normalize: Whether each entry of the vector that enters the head has mean 0 and variance 1 over a batch.
        readout: What enters the head: ``"distances"``, or the sum or mean of the encoded nodes beside them,
            ``"distances+sum"`` or ``"distances+mean"``.
        square_root: Whether the head is given the square roots of the distances.
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
    activation: bool = False
    dropout: float = 0.0
    hidden_layers: int = 2
    normalize: bool = False
    readout: Readout = "distances"
    square_root: bool = False
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
        return {"num_layers": self.num_layers, "width": self.width, "activation": self.activation}

    @property
    def head(self) -> HeadOptions:
        """The settings that are arguments of :func:`prediction_head`."""
        return {"dropout": self.dropout, "hidden_layers": self.hidden_layers, "normalize": self.normalize}


class GraphInputs(TypedDict, total=False):
    """What graphs may have besides features and edges; see :meth:`TFGWPooling.forward`."""

    edge_weight: Tensor | None
    structure: Tensor | None
    node_weights: Tensor | None
    batch_size: int | None


class GINOptions(HeadOptions, total=False):
    """Settings of :class:`GINModel`."""

    num_layers: int
    width: int
    activation: bool


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
            encoder = GINEncoder(config.in_channels, **config.encoder)
        self.encoder = encoder
        self.pool = TFGWPooling(encoder.out_channels, **config.pooling)
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
        """What enters the head: the distances, and what else ``config.readout`` names, ``(batch_size, channels)``."""
        encoded = self.encoder(x, edge_index)
        distances = self.pool(encoded, edge_index, batch, **graphs)
        if self.config.square_root:
            distances = (distances + ROOT_OFFSET).sqrt()
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
    """GIN as the paper compares with it: the same layers and head, and the sum over nodes as readout.

    Args:
        in_channels: Features per node.
        out_channels: Number of classes, or of values to predict.
        num_layers: GIN layers.
        width: Features that each layer computes.
        activation: Whether each layer ends with a ReLU.
        **head: As in :func:`prediction_head`.
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
        **head: Unpack[HeadOptions],
    ) -> None:
        super().__init__()
        self.encoder = GINEncoder(in_channels, width=width, num_layers=num_layers, activation=activation)
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

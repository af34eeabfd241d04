"""OT-GNN's pooling layer."""

import torch
from torch import Tensor

from tfgw.nn.concurrent_solves import concurrent_solves
from tfgw.nn.padding import current_padding
from tfgw.nn.template_layer import TemplateLayer, checked, checked_weights
from tfgw.nn.threads import solver_threads
from tfgw.ot.checks import thread_count
from tfgw.ot.problem import Problem
from tfgw.ot.solve import distances


class TWPooling(TemplateLayer):
    """OT-GNN's layer: exact squared 2-Wasserstein distances between node features and K learned point clouds.

    Args:
        in_channels: Features per node.
        num_templates: Number of clouds K; the layer's output has this many channels.
        template_nodes: Points per cloud m.
        learn_templates: Whether the points are parameters. Otherwise they are buffers.
        learn_weights: Whether the weights of the points are parameters. Otherwise they are buffers, initially uniform.
        num_threads: Number of solver threads (default: :func:`torch.get_num_threads`).
    """

    supports_padding = True

    def __init__(
        self,
        in_channels: int,
        num_templates: int,
        template_nodes: int,
        *,
        learn_templates: bool = True,
        learn_weights: bool = True,
        num_threads: int | None = None,
    ) -> None:
        learned = {"learn_templates": learn_templates, "learn_weights": learn_weights}
        super().__init__(in_channels, num_templates, template_nodes, **learned)
        thread_count(num_threads)
        self.num_threads = num_threads
        self.reset_parameters()

    @torch.no_grad()
    def set_templates(self, features: Tensor, weights: Tensor | None = None) -> None:
        """Set the points ``(K, m, d)`` and weights ``(K, m)`` (default: uniform) of the clouds."""
        features, weights = checked("features", features, self.template_features), checked_weights(self, weights)
        self.template_features.copy_(features)
        self.template_weights.copy_(weights)

    def forward(
        self,
        x: Tensor,
        batch: Tensor | None = None,
        *,
        node_weights: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Compute distances ``(batch_size, num_templates)``; arguments as in :class:`tfgw.ot.GraphBatch`."""
        features_only = self.template_weights.new_zeros(self.num_templates)
        return distances(
            Problem(
                x=x,
                batch=batch,
                batch_size=batch_size,
                node_weights=node_weights,
                edge_index=None,
                edge_weight=None,
                structure=None,
                template_structure=None,
                template_features=self.template_features,
                template_weights=self.template_weights,
                alpha=features_only,
                num_threads=solver_threads(self.num_threads),
                padded_nodes=current_padding() is not None,
                concurrent_solves=concurrent_solves(),
            )
        )

    def __repr__(self) -> str:
        return (
            f"TWPooling({self.in_channels}, {self.num_templates}, {self.template_nodes}, "
            f"learn_templates={self.learn_templates}, learn_weights={self.learn_weights}, "
            f"num_threads={self.num_threads})"
        )

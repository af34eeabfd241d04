"""Base class of pooling layers with templates: features, weights, and the projection after a step."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from tfgw.nn import projection_hooks
from tfgw.nn.constraints import Constraint
from tfgw.nn.padding import PaddedShape
from tfgw.nn.projections import project_
from tfgw.ot.backends import cuda
from tfgw.ot.problem import ProblemSize, weight_tolerance


class TemplateLayer(nn.Module):
    """Holds ``template_features`` (K, m, d) and ``template_weights`` (K, m), each a parameter or a buffer."""

    template_features: Tensor
    template_weights: Tensor

    def __init__(
        self,
        in_channels: int,
        num_templates: int,
        template_nodes: int,
        *,
        learn_templates: bool,
        learn_weights: bool,
    ) -> None:
        super().__init__()
        for name, size in (("num_templates", num_templates), ("template_nodes", template_nodes)):
            if size < 1:
                raise ValueError(f"{name}: must be at least 1, got {size}")
        if in_channels < 0:
            raise ValueError(f"in_channels: must not be negative, got {in_channels}")
        self.in_channels = in_channels
        self.num_templates = num_templates
        self.template_nodes = template_nodes
        self.learn_templates = learn_templates
        self.learn_weights = learn_weights
        self._hold("template_features", torch.empty(num_templates, template_nodes, in_channels), learn_templates)
        self._hold("template_weights", torch.empty(num_templates, template_nodes), learn_weights)
        projection_hooks.register(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy, and register it as a new layer."""
        super().__setstate__(state)
        projection_hooks.register(self)

    def _hold(self, name: str, tensor: Tensor, learned: bool) -> None:
        if learned:
            self.register_parameter(name, nn.Parameter(tensor))
        else:
            self.register_buffer(name, tensor)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Reset to random features and uniform weights."""
        self.template_features.normal_()
        self.template_weights.fill_(1 / self.template_nodes)

    def project_(self) -> None:
        """Project every learned parameter onto its constraint set, in place."""
        project_(self._constraints())

    def _constraints(self) -> list[Constraint]:
        """Return the constraint sets of the learned parameters; a subclass may have more of them."""
        return [Constraint(self.template_weights)] if self.learn_weights else []

    def unsupported_reason(self, shape: PaddedShape) -> str | None:
        """Return why the GPU cannot solve a batch padded to this shape, or ``None`` (:mod:`tfgw.train.cuda_graph`)."""
        return cuda.unsupported_size(shape.device, self._problem_size(shape))

    def _problem_size(self, shape: PaddedShape) -> ProblemSize:
        """Return the size of the solver's problem for a batch padded to this shape."""
        return ProblemSize(
            num_graphs=shape.graphs,
            num_nodes=shape.nodes,
            num_templates=self.num_templates,
            template_nodes=self.template_nodes,
        )

    @property
    def live_nodes(self) -> Tensor:
        """Number of template nodes with positive weight, ``(num_templates,)``."""
        return (self.template_weights > 0).sum(-1)


def project_after_step(optimizer: torch.optim.Optimizer, model: nn.Module) -> RemovableHandle:
    """Call ``project_()`` of every template layer in ``model`` after each ``optimizer.step()``.

    Without this call, PyTorch optimisers project all layers whose parameters they hold, with the same results. The call
    makes the projection explicit, and fails for a model without template layers.

    Returns a handle whose ``remove()`` stops the projection of these layers by this optimiser.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, TemplateLayer)]
    if not layers:
        raise ValueError("model: has no template layer to project")
    return projection_hooks.project_explicitly(optimizer, layers, partial(project_layers_, layers))


def project_layers_(layers: Sequence[TemplateLayer]) -> None:
    """Call ``project_()`` of every layer; those that have not overridden it are projected together."""
    together: list[Constraint] = []
    for layer in layers:
        if type(layer).project_ is TemplateLayer.project_:
            together += layer._constraints()
        else:
            layer.project_()
    project_(together)


def checked(name: str, source: Tensor, target: Tensor) -> Tensor:
    """Return ``source`` as a tensor; it must have the shape of ``target`` and finite values."""
    source = torch.as_tensor(source)
    if source.shape != target.shape:
        raise ValueError(f"{name}: expected shape {tuple(target.shape)}, got {tuple(source.shape)}")
    if not bool(torch.isfinite(source).all()):
        raise ValueError(f"{name}: has an entry that is not finite")
    return source


def checked_weights(layer: TemplateLayer, weights: Tensor | None) -> Tensor:
    """Return template weights on the simplex; ``None`` means uniform."""
    if weights is None:
        return torch.full_like(layer.template_weights, 1 / layer.template_nodes)
    weights = checked("weights", weights, layer.template_weights)
    tolerance = weight_tolerance(layer.template_weights.dtype)
    if not bool((weights >= 0).all()) or not bool(((weights.double().sum(-1) - 1).abs() <= tolerance).all()):
        raise ValueError("weights: must be non-negative and sum to 1 for each template")
    return weights

"""The explanations as an algorithm of :mod:`torch_geometric.explain`, like GNNExplainer."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.explain import Explanation, ModelConfig
from torch_geometric.explain.algorithm import ExplainerAlgorithm
from torch_geometric.explain.config import MaskType, ModelMode, ModelTaskLevel
from torch_geometric.nn import MessagePassing

from tfgw.explanations.attribution import Attribution
from tfgw.explanations.ensemble_attribution import attribute_ensemble
from tfgw.explanations.kernel_attribution import KernelAttribution, attribute_kernel
from tfgw.explanations.reference import Reference
from tfgw.nn import Ensemble, KernelModel, TFGWModel
from tfgw.nn.ensemble import members_of
from tfgw.ot.inputs import count_graphs


class MaskableModel(nn.Module):
    """A :class:`tfgw.nn.TFGWModel`, or an ensemble, whose structure terms respond to the edge masks of an explainer.

    PyTorch Geometric masks messages. The distances of a model on adjacency also depend on edges directly. Here the
    weight of an edge is multiplied by its mask, so that metrics and mask-learning explainers act on both.

    Args:
        model: The network, or an ensemble. Kernel machines are refused.
    """

    def __init__(self, model: TFGWModel | Ensemble | KernelModel) -> None:
        super().__init__()
        if isinstance(model, KernelModel):
            raise ValueError("model: is a kernel machine, whose features are labels of neighbourhoods without masks")
        structure = members_of(model)[0].config.structure
        if structure != "adjacency":
            raise ValueError(f"model: uses structure={structure!r}, whose edges cannot be masked")
        self.model = model
        self.masked = MessagePassing()

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, **graphs: Any) -> Tensor:
        """Call the network with masked edges."""
        if self.masked.explain:
            weight = graphs.get("edge_weight")
            weight = x.new_ones(edge_index.shape[1]) if weight is None else weight
            graphs["edge_weight"] = self.masked.explain_message(weight[:, None], len(x)).squeeze(1)
        return self.model(x, edge_index, batch, **graphs)


class TFGWExplainer(ExplainerAlgorithm):
    """Exact contributions (:mod:`tfgw.explanations`) of a network, an ensemble or a kernel machine as masks.

    >>> explainer = Explainer(MaskableModel(model), TFGWExplainer(), explanation_type="model",
    ...     node_mask_type="object", edge_mask_type="object",
    ...     model_config={"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"})
    >>> fidelity(explainer, explainer(data.x, data.edge_index))

    Args:
        scaled: Whether to scale masks to [0, 1], which the metrics of PyTorch Geometric expect: the lowest contribution
            becomes 0, the highest 1. Otherwise masks are the contributions.
        references: Reference of the contributions, one for each network (default: the mean of the training graphs, if
            the network stores it). Kernel machines use the mean of their training graphs.
    """

    def __init__(self, *, scaled: bool = True, references: Sequence[Reference] | None = None) -> None:
        super().__init__()
        self.scaled = scaled
        self.references = references

    def supports(self) -> bool:
        """Support graph-level tasks with one number per node and edge."""
        masks = (self.explainer_config.node_mask_type, self.explainer_config.edge_mask_type)
        config: ModelConfig = self.model_config
        return config.task_level == ModelTaskLevel.graph and all(kind in (None, MaskType.object) for kind in masks)

    def forward(
        self,
        model: nn.Module,
        x: Tensor,
        edge_index: Tensor,
        *,
        target: Tensor,
        index: int | Tensor | None = None,
        batch: Tensor | None = None,
        **graphs: Any,
    ) -> Explanation:
        """Compute masks of all graphs of a batch, or of those in ``index``; the masks of others are 0."""
        explained = model.model if isinstance(model, MaskableModel) else model
        if not isinstance(explained, KernelModel) and not all(isinstance(m, TFGWModel) for m in members_of(explained)):
            raise ValueError(
                f"model: expected a TFGWModel, a KernelModel or a MaskableModel, got {type(model).__name__}"
            )
        batch = torch.zeros(len(x), dtype=torch.long) if batch is None else batch
        wanted = range(count_graphs(batch)) if index is None else torch.as_tensor(index).flatten().tolist()
        nodes, edges = x.new_zeros(len(x)), x.new_zeros(edge_index.shape[1])
        for graph in wanted:
            of_nodes, of_edges = batch == graph, batch[edge_index[0]] == graph
            found = self._attribute(explained, _one_graph(x, edge_index, of_nodes, of_edges, graphs), target[graph])
            nodes[of_nodes], edges[of_edges] = self._mask(found.nodes).to(x), self._mask(found.edges).to(x)
        has_nodes, has_edges = self.explainer_config.node_mask_type, self.explainer_config.edge_mask_type
        return Explanation(node_mask=nodes[:, None] if has_nodes else None, edge_mask=edges if has_edges else None)

    def _attribute(self, model: nn.Module, inputs: dict[str, Any], target: Tensor) -> Attribution | KernelAttribution:
        explain: Callable[..., Attribution | KernelAttribution]
        if isinstance(model, KernelModel):
            explain = partial(attribute_kernel, model, inputs)
        else:
            explain = partial(attribute_ensemble, members_of(model), inputs, references=self.references)
        if self.model_config.mode == ModelMode.regression:
            return explain(task="regression")
        if self.model_config.mode == ModelMode.binary_classification:  # one output, for the second class
            return explain(task="multilabel", target=0)
        return explain(target=int(target))

    def _mask(self, values: Tensor) -> Tensor:
        if not self.scaled or not len(values):
            return values
        low, high = values.min(), values.max()
        return (values - low) / (high - low) if high > low else torch.ones_like(values)


def _one_graph(
    x: Tensor, edge_index: Tensor, of_nodes: Tensor, of_edges: Tensor, graphs: dict[str, Any]
) -> dict[str, Any]:
    """Return the inputs of one graph of a batch."""
    inputs = {"x": x[of_nodes], "edge_index": edge_index[:, of_edges] - int(of_nodes.nonzero()[0])}
    if graphs.get("edge_weight") is not None:
        inputs["edge_weight"] = graphs["edge_weight"][of_edges]
    if graphs.get("node_weights") is not None:
        inputs["node_weights"] = graphs["node_weights"][of_nodes]
    if graphs.get("structure") is not None:
        raise ValueError("structure: not supported for batches; use tfgw.explain for each graph")
    return inputs

"""Reference readouts of contributions."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import InMemoryDataset

from tfgw.nn import TFGWModel
from tfgw.nn.batch_norm import GraphVectorNorm
from tfgw.nn.readout import from_square_roots, square_roots
from tfgw.nn.threads import networks_on_one_thread
from tfgw.train.evaluate import BATCH_SIZE, evaluation_mode, readouts, store_for


class Reference(NamedTuple):
    """A reference readout, relative to which contributions are computed.

    Attributes:
        distances: Distances to the templates, ``(num_templates,)``.
        sums: Other entries of the readout, ``(channels,)``; often empty.
        structure: Structure part of ``distances`` (α times its cost), ``(num_templates,)``. If ``None``, it is
            estimated from its share in the explained graph.
    """

    distances: Tensor
    sums: Tensor
    structure: Tensor | None = None

    @classmethod
    def of_model(cls, model: TFGWModel) -> "Reference":
        """Return the mean over the training graphs, if batch normalisation of the readout stores it, else 0."""
        norm = next((module for module in model.head.modules() if isinstance(module, GraphVectorNorm)), None)
        if norm is None or norm.running_mean is None:
            first = next(module for module in model.head.modules() if isinstance(module, torch.nn.Linear))
            mean = torch.zeros(first.in_features, dtype=torch.float64)
        else:
            mean = norm.running_mean.detach().double().cpu()
        distances, sums = mean[: model.config.num_templates], mean[model.config.num_templates :]
        if model.config.square_root:
            distances = from_square_roots(distances)
        return cls(distances, sums)

    @classmethod
    def of_graphs(cls, model: TFGWModel, prepared: InMemoryDataset) -> "Reference":
        """Return the mean over preprocessed graphs."""
        structure, features = [], []
        with evaluation_mode(model), networks_on_one_thread():
            for batch in store_for(model, prepared).in_order(BATCH_SIZE):
                inputs = dict(batch.inputs)
                x = model.encoder(inputs.pop("x"), inputs["edge_index"])
                solved = model.pool.solve(x, plans=None, **inputs)
                alpha = model.pool.alpha.detach()
                structure.append((alpha * solved.structure_costs).double().cpu())
                features.append(((1 - alpha) * solved.feature_costs).double().cpu())
        sums = readouts(model, prepared)[:, model.config.num_templates :].double().cpu()
        mean = torch.cat(structure).mean(0)
        return cls(mean + torch.cat(features).mean(0), sums.mean(0), mean)

    def readout(self, model: TFGWModel) -> Tensor:
        """Return the input of the head, ``(channels,)``."""
        distances = square_roots(self.distances) if model.config.square_root else self.distances
        return torch.cat([distances, self.sums])

"""Costs of nodes and pairs of nodes at an optimal plan: the parts of a Fused Gromov–Wasserstein distance."""

from typing import NamedTuple

import torch
from torch import Tensor


class PlanCosts(NamedTuple):
    """Costs of one graph of n nodes against K templates, without the factors α and 1 − α.

    Attributes:
        pairs: Structure cost Pᵢⱼ of each pair of nodes, ``(K, n, n)``.
        features: Feature cost Fᵢ of each node, ``(K, n)``.
    """

    pairs: Tensor
    features: Tensor


def plan_costs(plans: Tensor, C: Tensor, F: Tensor, template_structure: Tensor, template_features: Tensor) -> PlanCosts:
    """Compute the costs at the plans ``(n, K, m)``, for C ``(n, n)`` and F ``(n, d)``."""
    T = plans.transpose(0, 1)  # (K, n, m)
    h = T.sum(-1)
    C_bar = template_structure.to(T)
    # Σₐᵦ Tᵢₐ Tⱼᵦ (Cᵢⱼ − C̄ₐᵦ)² with the square expanded
    pairs = C**2 * h[:, :, None] * h[:, None, :] - 2 * C * (T @ C_bar @ T.mT) + T @ C_bar**2 @ T.mT
    squared = torch.stack([(F[:, None, :] - F_bar.to(T)).square().sum(-1) for F_bar in template_features])
    return PlanCosts(pairs, (T * squared).sum(-1))


def dense_structure(n: int, edge_index: Tensor, edge_weight: Tensor | None, structure: Tensor | None) -> Tensor:
    """Return C ``(n, n)`` of one graph: the given matrix, or the sum of its edge weights."""
    if structure is not None:
        return structure.reshape(n, n).double()
    weights = torch.ones(edge_index.shape[1]) if edge_weight is None else edge_weight
    C = torch.zeros(n, n, dtype=torch.float64)
    return C.index_put_((edge_index[0], edge_index[1]), weights.double(), accumulate=True)

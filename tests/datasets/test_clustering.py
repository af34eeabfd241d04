"""Clustering coefficients, compared with those of networkx."""

import networkx as nx
import numpy as np
import pytest
import torch

from tfgw.datasets import clustering
from tfgw.datasets.clustering import clustering_coefficients


@pytest.mark.parametrize("block", [1, 5, 4096])
def test_clustering_coefficients(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random graphs of all densities side by side, with loops and repeated edges, in blocks of several sizes."""
    monkeypatch.setattr(clustering, "BLOCK", block)
    parts = [nx.gnm_random_graph(n, m, seed=n) for n, m in ((2, 1), (7, 11), (9, 36), (13, 0), (17, 40), (23, 200))]
    union = nx.disjoint_union_all(parts)
    edges = [*union.edges, *((b, a) for a, b in union.edges)]
    edges += [edges[3], edges[3], (4, 4), (70, 70)]
    values = clustering_coefficients(torch.tensor(edges).T, len(union))
    assert values.shape == (71, 1)
    np.testing.assert_allclose(values[:, 0].numpy(), list(nx.clustering(union).values()), rtol=1e-12)
    assert 0 < values.mean() < 1


def test_clustering_of_hubs_and_of_nothing() -> None:
    wheel = nx.wheel_graph(30_001)  # quickly, although the hub is on 900 million paths
    edges = torch.tensor([*wheel.edges, *((b, a) for a, b in wheel.edges)]).T
    values = clustering_coefficients(edges, 30_001)[:, 0]
    assert values[1:].tolist() == pytest.approx([2 / 3] * 30_000)
    assert float(values[0]) == pytest.approx(2 / 29_999)
    assert clustering_coefficients(torch.empty(2, 0, dtype=torch.int64), 0).shape == (0, 1)

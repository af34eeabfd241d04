"""WEGL: diffusion by hand, embedding against POT."""

import numpy as np
import ot as pot
import torch
from torch_geometric.utils import to_dense_adj

from tests.baselines.small import awkward_graphs, labelled_graphs
from tfgw.baselines import WEGL
from tfgw.baselines.wegl import diffused


def test_diffusion_is_the_normalised_adjacency() -> None:
    for graph in awkward_graphs():
        adjacency = to_dense_adj(graph.edge_index, max_num_nodes=graph.num_nodes)[0].double()
        adjacency += torch.eye(graph.num_nodes)
        scale = adjacency.sum(1).rsqrt()
        step = scale[:, None] * adjacency * scale[None]
        expected = torch.cat([graph.x, step @ graph.x, step @ step @ graph.x], dim=1)
        torch.testing.assert_close(diffused(graph.x, graph.edge_index, 2, concatenate=True), expected)
        torch.testing.assert_close(diffused(graph.x, graph.edge_index, 2, concatenate=False), expected[:, 6:])


def test_embedding_is_the_barycentric_projection() -> None:
    rng = np.random.default_rng(0)
    graphs, names = labelled_graphs(16)
    for graph in graphs:  # no ties: the plan is unique
        graph.x = graph.x + 0.1 * torch.from_numpy(rng.normal(size=tuple(graph.x.shape)))
    model = WEGL(num_layers=1, n_estimators=5, random_state=0).fit(graphs, names)
    reference, vectors = model.reference_, model.transform(graphs)
    assert reference.shape == (round(np.mean([graph.num_nodes for graph in graphs])), 6)
    for graph, vector in zip(graphs, vectors, strict=True):
        nodes = model.scaler_.transform(diffused(graph.x, graph.edge_index, 1, concatenate=True).numpy())
        plan = pot.emd([], [], pot.dist(reference, nodes))
        expected = plan @ nodes * len(reference) - reference
        np.testing.assert_allclose(vector, expected.flatten(), atol=1e-5)

"""OT-GNN: the paper's parameter count, and its distances against POT."""

import numpy as np
import ot as pot
import torch

from tests.baselines.small import labelled_graphs
from tfgw.baselines import OTGNN
from tfgw.baselines.ot_gnn import OTGNNModel


def test_parameters_of_table_3() -> None:
    """PTC: 18 features, 2 classes, clouds of 13 points (its median number of nodes)."""
    model = OTGNNModel(18, 2, num_templates=16, template_nodes=13)
    assert sum(p.numel() for p in model.parameters()) == 30_802


def test_vector_of_distances() -> None:
    graphs, names = labelled_graphs(12)
    settings = {"n_estimators": 1, "epochs": 3, "accelerator": "cpu", "random_state": 0}
    fitted = OTGNN(num_templates=5, num_layers=1, width=4, **settings).fit(graphs, names)
    assert fitted.model_.pool.template_nodes == 5  # the median
    model, graph = fitted.model_, graphs[3]
    nodes = model.encoder(graph.x, graph.edge_index).detach().numpy()
    points, weights = model.pool.template_features.detach().numpy(), model.pool.template_weights.detach().numpy()
    expected = [
        pot.emd2(np.full(len(nodes), 1 / len(nodes)), h / h.sum(), pot.dist(nodes, cloud))
        for cloud, h in zip(points, weights, strict=True)
    ]
    with torch.no_grad():
        np.testing.assert_allclose(model.embed(graph.x, graph.edge_index)[0], expected, rtol=1e-6)


def test_clouds_start_at_encoded_training_graphs() -> None:
    graphs, names = labelled_graphs(8)
    settings = {"n_estimators": 1, "epochs": 1, "lr": 1e-12, "accelerator": "cpu", "random_state": 0}
    model = OTGNN(num_templates=4, num_layers=0, **settings)
    cloud_rows = model.fit(graphs, names).model_.pool.template_features.detach().reshape(-1, 3)
    rows = torch.cat([graph.x for graph in graphs])
    assert float(torch.cdist(cloud_rows, rows).min(1).values.max()) < 0.5  # noise on repeated graphs only

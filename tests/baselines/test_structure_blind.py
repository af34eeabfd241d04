"""The perceptron and the random forest know sizes and sums, and nothing else."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch_geometric.data import Data

from tests.baselines.small import BLIND, labelled_graphs, name_of
from tfgw.baselines.summaries import summaries

blind = pytest.mark.parametrize("model", BLIND, ids=name_of)


def test_summaries_by_hand() -> None:
    edges = torch.tensor([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]])  # a path of three nodes, a loop at its end
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.5]])
    one_way = torch.tensor([[0, 1], [1, 2]])
    expected = torch.tensor([[3.0, 2.0, 2.0, 1.5]]).expand(2, 4)
    graphs = [Data(x=x, edge_index=edges), Data(x=x, edge_index=one_way)]
    torch.testing.assert_close(summaries(graphs), expected)


@blind
def test_learns_counts_of_labels(model: Any) -> None:
    graphs, _ = labelled_graphs(60)
    counts = np.array([int(graph.x[:, 0].sum()) for graph in graphs])
    model = clone(model).fit(graphs[:40], counts[:40] > 1)
    assert model.score(graphs[40:], counts[40:] > 1) > 0.9


@blind
def test_edges_may_be_anywhere(model: Any) -> None:
    graphs, names = labelled_graphs()
    model = clone(model).fit(graphs, names)
    rewired = []
    for number, graph in enumerate(graphs):
        links = nx.gnm_random_graph(graph.num_nodes, graph.num_edges // 2, seed=number)
        rewired.append(Data(x=graph.x, edge_index=torch.from_numpy(np.stack(np.nonzero(nx.to_numpy_array(links))))))
    np.testing.assert_array_equal(model.predict_proba(rewired), model.predict_proba(graphs))

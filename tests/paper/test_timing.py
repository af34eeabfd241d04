"""Times of predictions, by a clock that the classifier moves."""

import time

import pytest
import torch
from torch_geometric.data import Data

from tfgw.datasets import from_data_list
from tfgw.paper.protocols.timing import prediction_times


def test_times_of_all_graphs_together_and_of_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call takes 3 ms and 2 ms per graph; the first of each kind a second more, which a median does not show."""
    now, called = 5.0, set()

    class Classifier:
        def predict(self, graphs: list[Data]) -> None:
            nonlocal now
            now += 0.003 + 0.002 * len(graphs) + (len(graphs) not in called)
            called.add(len(graphs))

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = from_data_list([Data(edge_index=edges, num_nodes=2, y=torch.tensor([i % 2])) for i in range(6)])
    assert prediction_times(Classifier(), graphs) == pytest.approx({"ms_per_graph": 2.5, "ms_one_graph": 5.0})

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.loader import DataLoader

from tfgw.datasets import GraphDataset, load


@pytest.fixture
def dataset(tiny: dict[str, str], write_folder: Callable[..., Path]) -> GraphDataset:
    return load(write_folder(tiny))


def test_graphs_are_views_of_shared_tensors(dataset: GraphDataset) -> None:
    storage = {graph.x.untyped_storage().data_ptr() for graph in dataset}
    assert len(storage) == 1


def test_selection_keeps_classes_and_original_labels(dataset: GraphDataset) -> None:
    part = dataset[[2, 0]]
    assert [graph.num_nodes for graph in part] == [4, 3]
    assert part.y.tolist() == [1, 1]
    assert part.num_classes == 2
    assert [part.classes[label] for label in part.y] == [5, 5]
    assert dataset[torch.tensor([False, True, False])].y.tolist() == [0]


def test_nodes_of_selected_graphs(dataset: GraphDataset) -> None:
    for part in (dataset, dataset[[2, 0]], dataset[[1]], dataset[:0]):
        assert part.node_counts.tolist() == [graph.num_nodes for graph in part]
        assert torch.equal(part.node_features, torch.cat([dataset[0].x[:0], *(graph.x for graph in part)]))
    assert len(set(dataset.node_counts.tolist())) > 1


def test_any_dataset_of_pyg_in_memory_is_viewed_without_a_copy(dataset: GraphDataset) -> None:
    class Mine(InMemoryDataset):
        def __init__(self, graphs: list[Data]) -> None:
            super().__init__()
            self.data, self.slices = self.collate(graphs)

    other = Mine(list(dataset))
    part = GraphDataset.of(other[[2, 0]])
    assert GraphDataset.of(part) is part
    assert part.stacked["x"].data_ptr() == other.x.data_ptr()
    assert [graph.num_nodes for graph in part] == [4, 3]
    assert (part.is_whole, part.positions, part.y.tolist()) == (False, [2, 0], [1, 1])
    assert GraphDataset.of(other).is_whole


def test_loader_makes_batches(dataset: GraphDataset) -> None:
    (batch,) = DataLoader(dataset, batch_size=3)
    assert batch.x.shape == (9, 3)
    assert batch.y.tolist() == [1, 0, 1]
    assert batch.edge_index.max() == 7  # the last node is isolated


def test_map_applies_once_and_keeps_the_rest(dataset: GraphDataset) -> None:
    calls = []

    def mark(graph: Data) -> Data:
        calls.append(graph.num_nodes)
        graph.mark = torch.tensor([graph.num_nodes])
        return graph

    mapped = dataset[1:].map(mark)
    assert [graph.mark.item() for graph in mapped] == [2, 4]
    assert calls == [2, 4]
    assert (mapped.name, mapped.classes) == (dataset.name, dataset.classes)
    assert "mark" not in dataset[1]


def test_with_node_features_leaves_the_original_alone(dataset: GraphDataset) -> None:
    before = dataset[2].x.clone()
    part = dataset[[2]].with_node_features(lambda x: x + 10)
    torch.testing.assert_close(part[0].x, before + 10)
    torch.testing.assert_close(dataset[2].x, before)


def test_repr(dataset: GraphDataset) -> None:
    assert repr(dataset) == "GraphDataset('TINY', graphs=3, classes=2)"


@pytest.mark.parametrize("y", [None, torch.tensor([4, 2, 7]), torch.rand(3, 2)])
def test_stacked_graphs_are_those_that_pyg_collates(y: torch.Tensor | None) -> None:
    graphs = [
        Data(x=torch.rand(n, 2), edge_index=torch.randint(n, (2, 2 * n)), edge_weight=torch.rand(2 * n))
        for n in (3, 1, 5)
    ]
    stacked = GraphDataset.stack(graphs, y, name="three", classes=("a",))
    assert (stacked.name, stacked.classes) == ("three", ("a",))
    for number, graph in enumerate(graphs):
        expected = graph.to_dict() | ({} if y is None else {"y": y[number : number + 1]})
        assert set(stacked[number].keys()) == set(expected)
        assert all(torch.equal(stacked[number][key], value) for key, value in expected.items())


def test_stacked_graphs_become_data_when_asked_for() -> None:
    graphs = [Data(x=torch.ones(n, 2), edge_index=torch.tensor([[0], [n - 1]])) for n in (2, 3)]
    dataset = GraphDataset.stack(graphs, torch.tensor([1, 0]), name="two")
    doubled = dataset.with_node_features(lambda x: 2 * x)
    assert doubled.stacked.keys() == {"x", "edge_index", "y"}
    assert torch.equal(doubled.x, torch.full((5, 2), 2.0))  # as PyTorch Geometric's datasets have it
    assert torch.equal(doubled.stacked["x"], doubled.x)
    for copied in (copy.copy(dataset), copy.deepcopy(dataset), pickle.loads(pickle.dumps(dataset))):
        assert torch.equal(copied[1].x, graphs[1].x)
        assert not hasattr(copied, "z")
    part = dataset[[1]]
    assert part.num_node_features == 2
    assert part.y is not None
    assert part.y.tolist() == [0]


def test_labels_as_values() -> None:
    graphs = [Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([y])) for y in (1, 0, -1)]
    dataset = GraphDataset.from_graphs(graphs, name="three", classes=(3, 7))
    values = dataset.with_values()
    assert values.y[:2].tolist() == [7.0, 3.0]
    assert values.y[2].isnan()
    assert values.classes == ()
    assert values.with_values() is values
    with pytest.raises(ValueError, match="three: its labels are not numbers"):
        GraphDataset.from_graphs(graphs, name="three", classes=("a", "b")).with_values()

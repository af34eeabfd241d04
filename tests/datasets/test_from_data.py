import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset

from tfgw.datasets import from_data_list


def graph(nodes: int, *, y: object = 0, columns: int = 2, **others: object) -> Data:
    """A path, with distinct features."""
    ends = torch.arange(nodes - 1)
    edge_index = torch.stack([torch.cat([ends, ends + 1]), torch.cat([ends + 1, ends])])
    x = torch.arange(nodes * columns).reshape(nodes, columns) + 100.0 * nodes
    return Data(x=x, edge_index=edge_index, y=y, **others)


def test_round_trip() -> None:
    graphs = [graph(3, y=torch.tensor([40])), graph(5, y=torch.tensor([-7])), graph(2, y=torch.tensor([40]))]
    dataset = from_data_list(graphs, name="mine")
    assert (dataset.name, dataset.classes, dataset.y.tolist()) == ("mine", (-7, 40), [1, 0, 1])
    for given, kept in zip(graphs, dataset, strict=True):
        assert kept.x.equal(given.x)
        assert kept.edge_index.equal(given.edge_index)
    assert graphs[0].y.tolist() == [40]


def test_other_keys_are_kept() -> None:
    graphs = [graph(n, position=torch.full((n, 3), float(n)), edge_weight=torch.ones(2 * n - 2)) for n in (2, 4)]
    dataset = from_data_list(graphs)
    assert dataset[1].position.equal(graphs[1].position)
    assert dataset[1].edge_weight.equal(graphs[1].edge_weight)


@pytest.mark.parametrize("y", [3, True, torch.tensor(3), torch.tensor([3]), torch.tensor([[3]])])
def test_any_form_of_label(y: object) -> None:
    dataset = from_data_list([graph(2, y=y), graph(3, y=y)])
    assert dataset.num_classes == 1
    assert dataset[1].y.tolist() == [0]


def test_real_targets_are_regression() -> None:
    dataset = from_data_list([graph(2, y=0.5), graph(3, y=-1.0)])
    assert dataset.classes == ()
    torch.testing.assert_close(dataset.y, torch.tensor([0.5, -1.0]))


def test_unlabelled_graphs() -> None:
    dataset = from_data_list([graph(2, y=None), graph(3, y=None)])
    assert dataset.y is None
    assert dataset.num_classes == 0


def test_single_graph() -> None:
    dataset = from_data_list([graph(4, y=9)])
    assert (len(dataset), dataset[0].num_nodes, dataset.classes) == (1, 4, (9,))


def test_degree_where_there_is_no_x() -> None:
    graphs = [graph(n) for n in (2, 4)]
    for each in graphs:
        each.num_nodes, each.x = each.num_nodes, None
    assert from_data_list(graphs)[1].x.argmax(dim=1).tolist() == [1, 2, 2, 1]


def test_flat_and_integer_features_become_a_float_column() -> None:
    graphs = [graph(2), graph(3)]
    for each in graphs:
        each.x = torch.arange(each.num_nodes)
    assert from_data_list(graphs)[1].x.tolist() == [[0.0], [1.0], [2.0]]


def changed(**changes: object) -> Data:
    data = graph(3)
    for key, value in changes.items():
        data[key] = value
    return data


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (changed(edge_index=torch.tensor([[0], [3]])), "graph 1: edge_index points to a node outside 0 to 2"),
        (
            changed(edge_index=torch.tensor([[-1], [0]])),
            "graph 1: edge_index points to a node outside 0 to 2",
        ),
        (changed(edge_index=torch.tensor([0, 1])), "graph 1: edge_index must be an int64 tensor"),
        (changed(edge_index=torch.zeros(2, 1)), "graph 1: edge_index must be an int64 tensor"),
        (graph(3, columns=4), "graph 1: x has 4 columns, but that of graph 0 has 2"),
        (changed(x=torch.full((3, 2), float("nan"))), "graph 1: x has a value that is not finite"),
        (changed(x=None, num_nodes=3), "graph 1: no x, but other graphs have one"),
        (changed(y=None), "graph 1: no y, but other graphs have one"),
        (changed(y=torch.tensor([1, 2])), "graph 1: y has 2 values, but that of graph 0 has 1"),
        (Data(x=torch.ones(0, 2), edge_index=torch.zeros(2, 0, dtype=torch.long), y=0), "graph 1: no nodes"),
    ],
)
def test_bad_graph_is_named(bad: Data, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_data_list([graph(2), bad])


def test_empty_list_is_refused() -> None:
    with pytest.raises(ValueError, match="the list of graphs is empty"):
        from_data_list([])


def test_a_dataset_object_of_pytorch_geometric() -> None:
    class Mine(InMemoryDataset):
        def __init__(self) -> None:
            super().__init__()
            edges = torch.tensor([[0, 1], [1, 0]])
            graphs = [Data(x=torch.full((2, 1), float(i)), edge_index=edges, y=torch.tensor([i % 2])) for i in range(4)]
            self.data, self.slices = self.collate(graphs)

    dataset = from_data_list(Mine())
    assert dataset.x.flatten().tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert dataset.classes == (0, 1)
    assert from_data_list(Mine()[[3, 1]]).x.flatten().tolist() == [3, 3, 1, 1]


def test_a_target_is_not_dropped_with_the_only_edge() -> None:
    """PyTorch Geometric takes any attribute with as many values as there are edges for one of the edges."""
    loop = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[2], [2]]), y=torch.tensor([1]), mass=torch.tensor([7.0]))
    other = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0]), mass=torch.ones(1))
    dataset = from_data_list([loop, other])
    assert dataset.y.tolist() == [1, 0]
    assert dataset[0].num_edges == 0
    assert dataset[0].mass.tolist() == [7.0]


def test_attributes_of_dropped_edges_are_dropped() -> None:
    graph = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1, 1], [1, 0, 1]]), y=torch.tensor([1]))
    graph.edge_attr, graph.lengths = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([4.0, 5.0, 6.0])
    (found,) = from_data_list([graph])
    assert found.edge_attr.flatten().tolist() == [1.0, 2.0]
    assert found.lengths.tolist() == [4.0, 5.0]

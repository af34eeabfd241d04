import torch

from tests.train.small import cycles_and_stars
from tfgw.datasets import GraphDataset, NodeEncoding
from tfgw.train import Preprocessing


def test_nodes_are_put_in_canonical_order_by_default() -> None:
    data = cycles_and_stars().with_node_features(lambda x: (x > 0).float())
    assert Preprocessing.fit(data) == Preprocessing(in_channels=3)
    assert Preprocessing(in_channels=3).canonical_order
    assert Preprocessing.fit(data, canonical_order=False) == Preprocessing(in_channels=3, canonical_order=False)


def test_real_valued_features_are_standardised_on_the_training_graphs() -> None:
    data = cycles_and_stars().with_node_features(lambda x: 5 * x + 2)
    train = data[:10]
    steps = Preprocessing.fit(train)
    x = torch.cat([graph.x for graph in steps(train)])
    assert torch.allclose(x.mean(0), torch.zeros(3), atol=1e-5)
    assert torch.allclose(x.std(0, correction=0), torch.ones(3), atol=1e-5)


def test_features_are_standardised_in_double_precision() -> None:
    graphs = [graph.clone() for graph in cycles_and_stars()]
    for graph in graphs:
        graph.x = graph.x.double() + 1000 / 3
    mean, scale = (1000 / 3, 333.0, 333.5), (1 / 7, 0.3, 2.0)
    steps = Preprocessing(in_channels=3, canonical_order=False, mean=mean, scale=scale)
    found = torch.cat([graph.x for graph in steps(GraphDataset.from_graphs(graphs, name="double"))])
    x = torch.cat([graph.x for graph in graphs])
    expected = [(x[:, column] - mean[column]) / scale[column] for column in range(3)]
    torch.testing.assert_close(found, torch.stack(expected, 1), rtol=0, atol=1e-11)


def test_zero_one_features_stay_unless_asked_for() -> None:
    data = cycles_and_stars().with_node_features(lambda x: (x > 0).float())
    assert Preprocessing.fit(data).mean is None
    assert Preprocessing.fit(data, standardize=True).mean is not None


def test_only_selected_graphs_decide() -> None:
    data = cycles_and_stars()
    x = data.stacked["x"].clone()
    x[: data[0].num_nodes] = (x[: data[0].num_nodes] > 0).float()
    mixed = data.with_tensors({"x": x})
    assert Preprocessing.fit(mixed[:1]).mean is None
    assert Preprocessing.fit(mixed[:2]).mean is not None


def test_labels_beside_attributes_stay_unless_asked_for() -> None:
    data = cycles_and_stars().with_node_features(lambda x: torch.cat([5 * x[:, :2] + 2, (x[:, 2:] > 0).float()], 1))
    data.encoding = NodeEncoding(features="both", num_attributes=2, vocabulary=((7,),))
    prepared = Preprocessing.fit(data)(data)
    x = torch.cat([graph.x for graph in prepared])
    assert torch.allclose(x[:, :2].std(0, correction=0), torch.ones(2), atol=1e-5)
    assert set(x[:, 2].tolist()) == {0.0, 1.0}
    assert Preprocessing.fit(data, standardize=True).mean[2] != 0


def test_shortest_paths_are_computed_ahead() -> None:
    data = cycles_and_stars(4)
    graph = Preprocessing.fit(data, structure="shortest_path")(data)[3]
    assert graph.structure.shape == (graph.num_nodes**2,)
    assert float(graph.structure.max()) == graph.num_nodes // 2  # a cycle

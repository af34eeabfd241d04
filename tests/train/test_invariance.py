"""The whole model, encoder included: isomorphic graphs get the same embedding, bit for bit, wherever they stand."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.train import Preprocessing, TrainedModel, check_model, embeddings, outputs

LABELS = 3


def molecules(count: int, rng: np.random.Generator) -> list[Data]:
    """Rings with tails and few node labels: full of nodes that look alike."""
    graphs = []
    for number in range(count):
        ring = int(rng.integers(3, 8))
        edges = [(i, (i + 1) % ring) for i in range(ring)]
        nodes = ring + int(rng.integers(0, 6))
        edges += [(int(rng.integers(node)), node) for node in range(ring, nodes)]
        edge_index = torch.tensor(edges + [(b, a) for a, b in edges]).T
        x = torch.nn.functional.one_hot(torch.from_numpy(rng.integers(LABELS, size=nodes)), LABELS)
        graphs.append(Data(x=x.double(), edge_index=edge_index, y=torch.tensor([number % 2])))
    return graphs


def renumbered(graph: Data, rng: np.random.Generator) -> Data:
    order = torch.from_numpy(rng.permutation(graph.num_nodes))
    edges = torch.from_numpy(rng.permutation(graph.num_edges))
    return Data(x=graph.x[order], edge_index=order.argsort()[graph.edge_index[:, edges]], y=graph.y)


def dataset_of(graphs: list[Data]) -> GraphDataset:
    return GraphDataset.from_graphs(graphs, name="molecules", classes=(0, 1))


@pytest.fixture(scope="module")
def graphs() -> list[Data]:
    return molecules(60, np.random.default_rng(0))


@pytest.fixture(scope="module")
def model(graphs: list[Data]) -> TFGWModel:
    torch.manual_seed(0)
    config = TFGWConfig(in_channels=LABELS, out_channels=2, num_templates=4, template_nodes=7)
    return TFGWModel(config).double().init_templates(graphs)


@pytest.mark.parametrize("structure", ["adjacency", "shortest_path"])
@pytest.mark.parametrize("n_starts", [1, 12])
def test_node_order_changes_nothing(graphs: list[Data], model: TFGWModel, structure: str, n_starts: int) -> None:
    steps = Preprocessing.fit(dataset_of(graphs), structure=structure)
    rng = np.random.default_rng(1)
    try:
        model.pool.n_starts = n_starts
        expected = embeddings(model, steps(dataset_of(graphs)))
        for _ in range(3):
            found = embeddings(model, steps(dataset_of([renumbered(graph, rng) for graph in graphs])))
            assert torch.equal(found, expected)
    finally:
        model.pool.n_starts = 1


def test_without_canonical_order_it_does(graphs: list[Data], model: TFGWModel) -> None:
    steps = Preprocessing.fit(dataset_of(graphs), canonical_order=False)
    rng = np.random.default_rng(1)
    expected = embeddings(model, steps(dataset_of(graphs)))
    found = embeddings(model, steps(dataset_of([renumbered(graph, rng) for graph in graphs])))
    assert not torch.allclose(found, expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("batch_size", [1, 7, 64])
@pytest.mark.parametrize("compute", [embeddings, outputs])
def test_batch_changes_nothing(graphs: list[Data], model: TFGWModel, compute: object, batch_size: int) -> None:
    dataset = Preprocessing.fit(dataset_of(graphs))(dataset_of(graphs))
    order = torch.from_numpy(np.random.default_rng(2).permutation(len(graphs)))
    expected: Tensor = compute(model, dataset)
    found: Tensor = compute(model, dataset[order], batch_size=batch_size)
    assert torch.equal(found, expected[order])


def test_threads_change_nothing(graphs: list[Data], model: TFGWModel) -> None:
    dataset = Preprocessing.fit(dataset_of(graphs))(dataset_of(graphs))
    expected = embeddings(model, dataset)
    try:
        for threads in (1, 3):
            model.pool.num_threads = threads
            assert torch.equal(embeddings(model, dataset), expected)
    finally:
        model.pool.num_threads = None


def test_check_finds_what_depends_on_node_order(graphs: list[Data], model: TFGWModel) -> None:
    dataset = dataset_of(graphs)
    found = {}
    for canonical in (True, False):
        steps = Preprocessing.fit(dataset, canonical_order=canonical)
        trained = TrainedModel(model=model, task="classification", classes=(0, 1), preprocessing=steps, source={})
        found[canonical] = check_model(trained, dataset, n_starts=4, renumberings=2)
        assert torch.equal(found[canonical].diagnosis.distances, found[canonical].distances)
        assert bool((found[canonical].thorough.distances <= found[canonical].distances * (1 + 1e-12)).all())
        assert bool((found[canonical].thorough.lower_bounds <= found[canonical].thorough.distances).all())
    assert float(found[True].renumbered.max()) == 0
    assert float(found[False].renumbered.max()) > 1e-4

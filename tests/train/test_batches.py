import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from tests.train.small import cycles_and_stars
from tfgw.datasets import ShortestPaths, from_data_list
from tfgw.train import TrainConfig
from tfgw.train.batches import GraphStore, balanced_batches, epoch_batches, shuffled
from tfgw.train.epoch_plan import EpochPlan


def test_a_batch_is_what_pyg_collates() -> None:
    dataset = cycles_and_stars(10).map(ShortestPaths())
    part = dataset[[8, 1, 5, 2]]  # a store knows the selected graphs only
    ours = GraphStore(part, dtype=torch.float64).batch(torch.tensor([2, 0, 3]))
    theirs = Batch.from_data_list([dataset[5], dataset[8], dataset[2]])
    assert torch.equal(ours.inputs["x"], theirs.x.double())
    assert torch.equal(ours.inputs["edge_index"], theirs.edge_index)
    assert torch.equal(ours.inputs["batch"], theirs.batch)
    assert torch.equal(ours.inputs["structure"], theirs.structure.double())
    assert torch.equal(ours.y, theirs.y)
    assert ours.inputs["batch_size"] == 3


def test_weights_of_edges_and_nodes_come_along() -> None:
    graphs = [graph.clone() for graph in cycles_and_stars(4)]
    for graph in graphs:
        graph.edge_weight = torch.rand(graph.num_edges)
        graph.node_weights = torch.full((graph.num_nodes,), 1 / graph.num_nodes)
    batch = GraphStore(from_data_list(graphs), dtype=torch.float32).batch(torch.tensor([3, 1]))
    assert torch.equal(batch.inputs["edge_weight"], torch.cat([graphs[3].edge_weight, graphs[1].edge_weight]))
    assert torch.equal(batch.inputs["node_weights"], torch.cat([graphs[3].node_weights, graphs[1].node_weights]))


def test_an_order_is_a_permutation_of_all_graphs() -> None:
    classes = torch.tensor([0] * 7 + [1] * 4)
    for given in (None, classes):
        order = shuffled(11, rng=np.random.default_rng(0), classes=given)
        assert order.sort().values.tolist() == list(range(11))


def test_stratified_batches_have_the_proportions_of_the_whole() -> None:
    classes = torch.tensor([0] * 60 + [1] * 30 + [2] * 10)
    order = shuffled(100, rng=np.random.default_rng(3), classes=classes)
    for batch in order.split(20):
        counts = classes[batch].bincount(minlength=3)
        assert (counts - torch.tensor([12, 6, 2])).abs().max() <= 1


@pytest.mark.parametrize(("batch_size", "counts"), [(32, [10, 10, 10]), (100, [33, 33, 33]), (2, [1, 1, 1])])
def test_balanced_batches_have_equally_many_graphs_of_each_class(batch_size: int, counts: list[int]) -> None:
    """Of the third class, ten graphs are repeated for 33 places: each is there three or four times."""
    classes = torch.tensor([0] * 60 + [1] * 35 + [2] * 10)
    batches = balanced_batches(classes, batch_size, rng=np.random.default_rng(3))
    assert len(batches) == -(-105 // batch_size)
    for batch in batches:
        assert classes[batch].bincount().tolist() == counts
        often = batch.bincount(minlength=105)
        assert int(often[:95].max()) == 1
        assert int(often[95:].max()) - int(often[95:].min()) <= 1


def test_balanced_batches_are_drawn_anew_in_every_step() -> None:
    classes = torch.tensor([0] * 60 + [1] * 40)
    batches = balanced_batches(classes, 20, rng=np.random.default_rng(4))
    assert len(torch.cat(batches).unique()) < 100  # a pass over all graphs would have each of them once
    assert not any(torch.equal(classes[batch], classes[batch].sort().values) for batch in batches)
    few = balanced_batches(torch.tensor([0, 0, 0, 1, 1]), 128, rng=np.random.default_rng(5))
    assert [len(batch) for batch in few] == [4]  # no more graphs than there are


def test_an_epoch_of_balanced_batches() -> None:
    store = GraphStore(cycles_and_stars(25), dtype=torch.float32)
    config = TrainConfig(seed=5, batch_size=8, balanced_batches=True)
    plans = [EpochPlan.of(epoch, config, store, rank=0, processes=1) for epoch in (1, 1, 2)]
    assert [len(batch) for batch in plans[0].batches] == [8, 8, 8, 8]
    assert plans[0].num_graphs == 32
    assert all(store.y[batch].bincount().tolist() == [4, 4] for batch in plans[0].batches)
    first, again, next_epoch = ([batch.tolist() for batch in plan.batches] for plan in plans)
    assert first == again != next_epoch


def test_a_small_last_batch_joins_the_one_before() -> None:
    sizes = [len(batch) for batch in epoch_batches(torch.arange(9), 4, smallest=2)]
    assert sizes == [4, 5]
    assert [len(batch) for batch in epoch_batches(torch.arange(10), 4, smallest=2)] == [4, 4, 2]
    assert [len(batch) for batch in epoch_batches(torch.arange(1), 4, smallest=2)] == [1]


def test_an_empty_dataset_is_refused() -> None:
    with pytest.raises(ValueError, match="no graphs"):
        GraphStore(cycles_and_stars(4)[[]], dtype=torch.float32)


def test_all_graphs_in_one_batch() -> None:
    graphs = [graph.clone() for graph in cycles_and_stars(5).map(ShortestPaths())]
    for number, graph in enumerate(graphs):
        graph.edge_weight = torch.rand(graph.num_edges)
        graph.node_weights = torch.full((graph.num_nodes,), 1 / graph.num_nodes)
        graph.graph_weight = torch.tensor([0.5 * number])
    store = GraphStore(from_data_list(graphs), dtype=torch.float64)
    (found,), expected = store.in_order(5), store.batch(torch.arange(5))
    assert found.inputs.keys() == expected.inputs.keys()
    assert all(torch.equal(found.inputs[k], v) for k, v in expected.inputs.items() if k != "batch_size")
    assert torch.equal(found.y, expected.y)
    assert found.weights.tolist() == expected.weights.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert found.weights.dtype == expected.weights.dtype == torch.float64
    assert (found.inputs["batch_size"], [batch.inputs["batch_size"] for batch in store.in_order(3)]) == (5, [3, 2])


def test_a_selection_in_one_batch() -> None:
    """Its graphs alone, though the tensors hold all of them."""
    dataset = cycles_and_stars(7)
    (found,) = GraphStore(dataset[[6, 2]], dtype=torch.float64).in_order(5)
    expected = Batch.from_data_list([dataset[6], dataset[2]])
    assert torch.equal(found.inputs["x"], expected.x.double())
    assert torch.equal(found.inputs["edge_index"], expected.edge_index)
    assert (found.inputs["batch_size"], found.y.tolist(), found.weights) == (2, [0, 0], None)


def test_an_epoch_is_the_same_in_every_version() -> None:
    """A checkpoint has no state of random generators: a later version must draw what this one drew."""
    store = GraphStore(cycles_and_stars(9), dtype=torch.float32)
    config = TrainConfig(seed=5, batch_size=4)
    found = [EpochPlan.of(3, config, store, rank=rank, processes=2) for rank in (0, 1)]
    for plan in found:  # all processes share the batches; of nine graphs, one would be left over
        assert [batch.tolist() for batch in plan.batches] == [[4, 1, 8, 5], [3, 2, 0, 6, 7]]
    assert found[1].seed == 235725461354084615
    assert found[0].seed != found[1].seed
    assert EpochPlan.of(4, config, store, rank=1, processes=2).seed != found[1].seed


def test_an_epoch_seeds_the_generators_of_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU that of the CPU, too; other GPUs keep theirs."""
    plan = EpochPlan(epoch=1, batches=[], seed=17)
    expected = torch.Generator().manual_seed(17).get_state()
    gpus = [torch.Generator() for _ in range(3)]
    monkeypatch.setattr(torch.cuda, "default_generators", gpus)
    with torch.random.fork_rng(devices=[]):
        for device in ("cpu", "cuda:1"):
            torch.default_generator.manual_seed(0)
            plan.seed_generators(torch.device(device))
            assert torch.get_rng_state().equal(expected)
    assert [bool(generator.get_state().equal(expected)) for generator in gpus] == [False, True, False]

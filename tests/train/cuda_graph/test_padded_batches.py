from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tests.nn.cuda.emulated_layers import launch_emulated
from tests.ot.cuda.emulation import COMPILER
from tests.train.small import cycles_and_stars
from tfgw.datasets import from_data_list
from tfgw.nn.cuda import launching
from tfgw.train.batches import GraphStore
from tfgw.train.cuda_graph.padded_batches import Capacity, PaddedStore


def weighted_store() -> GraphStore:
    graphs = [graph.clone() for graph in cycles_and_stars(10)]
    for graph in graphs:
        graph.edge_weight = torch.rand(graph.num_edges)
        graph.node_weights = torch.full((graph.num_nodes,), 1 / graph.num_nodes)
    return GraphStore(from_data_list(graphs)[[8, 1, 5, 2, 7]], dtype=torch.float64)


def test_a_padded_batch_begins_like_any_other() -> None:
    store, graphs = weighted_store(), torch.tensor([2, 0, 3])
    expected = store.batch(graphs)
    nodes, edges = len(expected.inputs["x"]), expected.inputs["edge_index"].shape[1]
    found = PaddedStore(store).batch(graphs, Capacity(nodes + 4, edges + 7))
    assert found.inputs.keys() == expected.inputs.keys()
    for key in ("x", "batch", "node_weights"):
        assert torch.equal(found.inputs[key][:nodes], expected.inputs[key]), key
        assert len(found.inputs[key]) == nodes + 4
    assert torch.equal(found.inputs["edge_weight"][:edges], expected.inputs["edge_weight"])
    assert torch.equal(found.inputs["edge_index"][:, :edges], expected.inputs["edge_index"])
    in_padding = found.inputs["edge_index"][:, edges:] - nodes
    assert in_padding.tolist() == [[0, 0, 0, 1, 1, 2, 2], [1, 1, 1, 2, 2, 3, 3]]
    assert (found.inputs["batch"][nodes:] == 3).all()
    assert torch.equal(found.y, expected.y)
    assert found.inputs["batch_size"] == 3
    assert found.rows.is_node.flatten().tolist() == [1.0] * nodes + [0.0] * 4
    assert not found.inputs["x"][nodes:].any()
    assert found.rows.share.sum().item() == pytest.approx(1, abs=1e-15)
    assert not found.rows.share[nodes:].any()


def test_features_and_edges_may_be_anything_a_batch_takes() -> None:
    """Integers become features, and graphs may have no edges."""
    graphs = [graph.clone() for graph in cycles_and_stars(5)]
    for graph in graphs:
        graph.x = (10 * graph.x).long()
        graph.edge_index = graph.edge_index[:, :0]
    store = GraphStore(from_data_list(graphs), dtype=torch.float32)
    expected = store.batch(torch.tensor([4, 1]))
    found = PaddedStore(store).batch(torch.tensor([4, 1]), Capacity.of(store, [torch.tensor([4, 1])]))
    nodes = len(expected.inputs["x"])
    assert found.inputs["x"].dtype == torch.float32
    assert torch.equal(found.inputs["x"][:nodes], expected.inputs["x"])
    assert found.inputs["edge_index"].shape == (2, 0)


@pytest.mark.parametrize("change", ["none", "a direction is missing", "unsorted"])
def test_batches_have_links_if_edges_are_sorted_and_undirected(change: str) -> None:
    graphs = [Data(x=torch.ones(n, 1), y=torch.zeros(1), edge_index=cycle(n)) for n in (3, 5, 4)]
    if change == "a direction is missing":
        graphs[1].edge_index = graphs[1].edge_index[:, 1:]
    elif change == "unsorted":
        graphs[1].edge_index = graphs[1].edge_index.flip(1)
    store = GraphStore(graphs, dtype=torch.float64)
    batch = PaddedStore(store).batch(torch.tensor([2, 1]), Capacity(13, 21))
    if change == "none":
        assert batch.rows.links is batch.inputs["edge_index"]
        assert (batch.rows.links[0].diff() >= 0).all()  # padding included
    else:
        assert batch.rows.links is None


def cycle(nodes: int) -> torch.Tensor:
    ring = torch.arange(nodes)
    edges = torch.stack([torch.cat([ring, ring]), torch.cat([ring - 1, ring + 1]) % nodes])
    return edges[:, (edges[0] * nodes + edges[1]).argsort()]


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("case", range(6))
def test_the_kernel_gathers_the_same_batches(case: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """More graphs than threads, graphs without edges, weights or none, padding of edges or none."""
    rng = np.random.default_rng(case)
    graphs = []
    for nodes in rng.integers(1, 6, 340 if case == 0 else 9):
        graph = Data(x=torch.from_numpy(rng.normal(size=(nodes, 1 + case))), y=torch.zeros(1))
        graph.edge_index = torch.from_numpy(rng.integers(0, nodes, (2, rng.integers(0, 9))))
        if case % 2:
            graph.edge_weight = torch.from_numpy(rng.random(graph.num_edges))
            graph.node_weights = torch.full((int(nodes),), 1 / nodes)
        graphs.append(graph)
    store = GraphStore(graphs, dtype=dtype)
    chosen = torch.from_numpy(rng.permutation(len(graphs))[: 300 if case == 0 else 5])
    lengths = (int(store.lengths(key, chosen).sum()) for key in ("x", "edge_index"))
    capacity = Capacity(next(lengths) + 2 + case, next(lengths) + 3 * (case % 3))
    padded = PaddedStore(store)
    expected = padded.batch(chosen, capacity)
    launched: list[str] = []

    def launch(name: str, *arguments: Any) -> None:
        launched.append(name)
        launch_emulated(name, *arguments)

    monkeypatch.setattr(launching, "launch", launch)
    monkeypatch.setattr(launching, "is_supported", lambda x: True)
    found = padded.batch(chosen, capacity)
    assert launched == [f"tfgw_padded_batch_{str(dtype).removeprefix('torch.')}"]
    assert found.inputs.keys() == expected.inputs.keys()
    assert found.inputs.pop("batch_size") == expected.inputs.pop("batch_size") == len(chosen)
    for key, tensor in expected.inputs.items():
        assert torch.equal(found.inputs[key], tensor), key
        assert found.inputs[key].dtype == tensor.dtype
    assert torch.equal(found.rows.is_node, expected.rows.is_node)
    assert torch.equal(found.rows.number, expected.rows.number)
    assert found.rows.number.dtype == dtype


def test_there_is_room_for_the_given_batches_and_most_others() -> None:
    torch.manual_seed(0)
    store = GraphStore(cycles_and_stars(400), dtype=torch.float64)
    padded, given = PaddedStore(store), [torch.arange(16), torch.arange(384, 400)]
    capacity = Capacity.of(store, given)
    assert all(padded.fits(graphs, capacity) for graphs in given)
    assert all(padded.fits(torch.randperm(400)[:16], capacity) for _ in range(1000))
    largest = store.lengths("x", store.positions).argsort(descending=True)[:16]
    assert not padded.fits(largest, capacity)
    assert padded.fits(largest, Capacity.of(store, [largest]))
    everything = torch.arange(400)
    assert Capacity.of(store, [everything]) == (len(store.tensors["x"]) + 2, store.tensors["edge_index"].shape[1])

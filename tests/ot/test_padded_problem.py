"""Padding of a problem, which only the GPU solves, is cut off where the CPU is to find its error."""

import torch

from tfgw.ot.problem import Problem


def padded(**changes: object) -> Problem:
    """Two graphs of three and two nodes; two more nodes and an edge between them are padding."""
    fields = {
        "x": torch.arange(14.0).reshape(7, 2),
        "batch": torch.tensor([0, 0, 0, 1, 1, 2, 2]),
        "batch_size": 2,
        "node_weights": torch.tensor([0.2, 0.3, 0.5, 0.4, 0.6, 0.0, 0.0]),
        "edge_index": torch.tensor([[0, 1, 3, 5, 4], [1, 2, 4, 6, 3]]),
        "edge_weight": torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]),
        "structure": None,
        "template_structure": torch.zeros(3, 4, 4),
        "template_features": torch.zeros(3, 4, 2),
        "template_weights": torch.full((3, 4), 0.25),
        "alpha": torch.full((3,), 0.5),
        "padded_nodes": True,
    }
    return Problem(**(fields | changes))


def test_nodes_and_edges_of_padding_are_cut_off() -> None:
    given = padded()
    found = given.unpadded()
    assert found.x.equal(given.x[:5])
    assert found.batch.tolist() == [0, 0, 0, 1, 1]
    assert found.node_weights.tolist() == given.node_weights[:5].tolist()
    assert found.edge_index.tolist() == [[0, 1, 3, 4], [1, 2, 4, 3]]
    assert found.edge_weight.tolist() == [1.0, 2.0, 3.0, 5.0]
    assert not found.padded_nodes
    assert found.template_weights is given.template_weights


def test_what_is_not_there_needs_no_cut() -> None:
    found = padded(node_weights=None, edge_index=None, edge_weight=None).unpadded()
    assert (found.node_weights, found.edge_index, found.edge_weight, len(found.x)) == (None, None, None, 5)
    for whole in (padded(padded_nodes=False), padded(batch=None)):
        assert whole.unpadded() is whole

"""Where nodes are drawn."""

import numpy as np
import pytest

from tfgw.plot.drawing_data import normalised
from tfgw.plot.layouts import cycle_layout, molecule_layout, spread_layout


def test_cycles_are_apart_from_each_other() -> None:
    edges = np.array([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 6), (6, 3)])
    places = cycle_layout(np.concatenate([edges, edges[:, ::-1]]).T, 7)
    assert places[:3, 0].max() < places[3:, 0].min()


def test_strong_edges_are_shorter_than_weak_ones() -> None:
    C = np.zeros((4, 4))
    C[0, 1] = C[1, 0] = C[2, 3] = C[3, 2] = 1
    C[1, 2] = C[2, 1] = 0.25
    places = spread_layout(C)
    lengths = [np.linalg.norm(places[a] - places[b]) for a, b in ((0, 1), (1, 2), (2, 3))]
    np.testing.assert_allclose(lengths, [1, 4, 1], atol=0.05)


@pytest.mark.parametrize("nodes", [1, 2, 3, 200])
def test_any_size_and_no_edges(nodes: int) -> None:
    places = normalised(spread_layout(np.zeros((nodes, nodes))))
    assert places.shape == (nodes, 2)
    assert np.isfinite(places).all()
    assert np.abs(places).max() <= 1 + 1e-12


def test_drawings_fill_their_box() -> None:
    places = normalised(np.array([[5.0, 1], [5, 9], [5.5, 5]]))
    np.testing.assert_allclose([places[:, 0].min(), places[:, 0].max()], [-1, 1])
    assert np.abs(places[:, 1]).max() < 0.1


def test_molecules_are_drawn_by_rdkit() -> None:
    """Toluene: all bonds have the same length, the ring is a regular hexagon."""
    pytest.importorskip("rdkit", reason="needs the extra chem")
    edges = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (1, 6)]).T
    places = molecule_layout(["C"] * 7, edges, np.array([1, *[1.5] * 6]))
    assert places is not None
    lengths = np.linalg.norm(places[edges[0]] - places[edges[1]], axis=1)
    np.testing.assert_allclose(lengths, lengths[0], rtol=0.02)
    np.testing.assert_allclose(np.linalg.norm(places[1] - places[4]), 2 * lengths[0], rtol=0.02)
    assert molecule_layout(["C", "not an element"], np.array([[0], [1]]), np.ones(1)) is None

"""Scaled targets have mean 0 and deviation 1 on the training graphs, and outputs are scaled back."""

import numpy as np
import pytest
import torch

from tests.train.small import cycles_and_stars, regression_data
from tfgw.datasets import GraphDataset
from tfgw.train.target_scaler import TargetScaler

TARGETS = np.array([[1.0, 12345.678, -2.0], [3.0, 12345.678, 0.0], [8.0, 12345.678, 5.0]])


def test_columns_are_scaled_and_constants_only_centred() -> None:
    scaler = TargetScaler.fit(TARGETS)
    scaled = scaler.transform(TARGETS)
    np.testing.assert_allclose(scaled.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(0), [1, 0, 1], atol=1e-12)
    assert scaler.mean == pytest.approx((4.0, 12345.678, 1.0))
    assert scaler.scale[1] == 1.0


@pytest.mark.parametrize("values", [(1.0, 1.0 + 1e-6), (1e-9, 3e-9), (1e12, 1e12 + 1000)])
def test_what_varies_a_little_is_scaled(values: tuple[float, float]) -> None:
    y = np.array(values)[:, None]
    np.testing.assert_allclose(TargetScaler.fit(y).transform(y), [[-1.0], [1.0]], rtol=1e-6)


def test_what_varies_by_rounding_only_is_constant() -> None:
    """The last digit of a large number, which is as large as a small number."""
    y = np.array([[1e12], [1e12 + 2**-13]])
    assert y[0] != y[1]
    assert TargetScaler.fit(y).scale == (1.0,)


def test_outputs_are_scaled_back() -> None:
    scaler = TargetScaler.fit(TARGETS)
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(TARGETS)), TARGETS, rtol=1e-12, atol=1e-12)
    restored = scaler.restored(torch.from_numpy(scaler.transform(TARGETS)))
    torch.testing.assert_close(restored, torch.from_numpy(TARGETS))


@pytest.mark.parametrize("values", [1, 2])
def test_targets_of_a_dataset(values: int) -> None:
    data = regression_data(values)
    scaler = TargetScaler.of_dataset(data)
    scaled = scaler.scaled(data)
    assert scaled.y.shape == (len(data), values)
    assert scaled.y.dtype == data.y.dtype
    torch.testing.assert_close(scaler.restored(scaled.y), data.y.reshape(len(data), values))
    part = scaler.scaled(data[[5, 2]])
    torch.testing.assert_close(part.y, scaled.y[[5, 2]])


def test_a_single_value_for_each_graph_is_a_column() -> None:
    data = cycles_and_stars(6).with_tensors({"y": torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 9.0])})
    scaler = TargetScaler.of_dataset(data)
    assert scaler.mean == (4.0,)
    assert scaler.scaled(data).y.shape == (6, 1)


def test_integer_targets_are_not_rounded() -> None:
    data = cycles_and_stars(4).with_tensors({"y": torch.tensor([0, 1, 5, 6])})
    scaled = TargetScaler.of_dataset(data).scaled(data).y
    torch.testing.assert_close(scaled[:, 0], torch.tensor([-3.0, -2.0, 2.0, 3.0]).double() / 6.5**0.5)


def test_graphs_without_targets_are_unchanged() -> None:
    graphs = [graph.clone() for graph in cycles_and_stars(5)]
    for graph in graphs:
        del graph.y
    bare = GraphDataset.from_graphs(graphs, name="bare")
    assert TargetScaler(mean=(2.0,), scale=(3.0,)).scaled(bare) is bare

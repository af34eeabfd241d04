import pytest
import torch
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset, Standardize, from_data_list


def make_dataset() -> GraphDataset:
    torch.manual_seed(0)
    scale, shift = torch.tensor([0.01, 1.0, 45.0, 0.0]), torch.tensor([3.0, 0.0, -100.0, 12345.678])
    edges = torch.zeros(2, 0, dtype=torch.long)
    return from_data_list([Data(x=torch.randn(n, 4) * scale + shift, edge_index=edges) for n in (5, 7, 11, 13)])


def test_training_nodes_have_mean_zero_and_deviation_one() -> None:
    dataset = make_dataset()
    train = [0, 2]
    result = Standardize().fit(dataset, train).transform(dataset)
    x = torch.cat([graph.x for graph in result[train]])
    torch.testing.assert_close(x.mean(dim=0), torch.zeros(4), atol=1e-4, rtol=0)
    torch.testing.assert_close(x.std(dim=0, correction=0), torch.tensor([1.0, 1.0, 1.0, 0.0]), atol=1e-4, rtol=0)


def test_other_graphs_do_not_count() -> None:
    dataset = make_dataset()
    before = Standardize().fit(dataset, [0, 2])
    dataset[1].x.fill_(1e6)
    after = Standardize().fit(dataset, [0, 2])
    assert before.mean.equal(after.mean)
    assert before.scale.equal(after.scale)


def test_constant_column_stays_finite_also_where_it_varies_outside_training() -> None:
    dataset = make_dataset()
    dataset[3].x[:, 3] = 12346.678
    result = Standardize().fit(dataset, torch.tensor([0, 1])).transform(dataset)
    assert result.x.isfinite().all()
    torch.testing.assert_close(result[3].x[:, 3], torch.ones(13), atol=1e-2, rtol=0)
    assert result.x.dtype == dataset.x.dtype


@pytest.mark.parametrize(
    ("values", "expected"),
    [((1e12, 1e12 + 2**-13), False), ((1e12, 1e12 + 1000), True), ((1e-9, 3e-9), True), ((-1e12, -1e12), False)],
)
def test_columns_that_vary_by_rounding_only_are_constant(values: tuple[float, float], expected: bool) -> None:
    """The last digit of a large number is as large as a small number."""
    x = torch.tensor(values, dtype=torch.float64)[:, None]
    graph = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long))
    fitted = Standardize().fit(GraphDataset.from_graphs([graph], name="columns"), [0])
    assert fitted.scale.tolist() == [pytest.approx((values[1] - values[0]) / 2, rel=1e-3) if expected else 1.0]

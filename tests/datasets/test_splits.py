import networkx as nx
import pytest
import torch

from tfgw.datasets import GraphDataset, from_networkx, random_split


def make_dataset(y: list) -> GraphDataset:
    return from_networkx([nx.path_graph(2)] * len(y), y=y)


def test_parts_are_disjoint_complete_and_in_proportion() -> None:
    dataset = make_dataset([0] * 60 + [1] * 30 + [2] * 10)
    split = random_split(dataset, val=0.2, test=0.3, seed=1)
    assert torch.cat(split).sort().values.tolist() == list(range(100))
    counts = [dataset[part].y.bincount(minlength=3).tolist() for part in split]
    assert counts == [[30, 15, 5], [12, 6, 2], [18, 9, 3]]


def test_seed_decides() -> None:
    dataset = make_dataset([0, 1] * 40)
    one, again, other = (random_split(dataset, seed=seed) for seed in (4, 4, 5))
    assert all(a.equal(b) for a, b in zip(one, again, strict=True))
    assert not one.test.equal(other.test)


def test_positions_refer_to_the_part_that_was_given() -> None:
    part = make_dataset([0] * 50 + [1] * 50)[torch.arange(30, 70)]
    split = random_split(part, val=0.1, test=0.25, seed=0)
    assert torch.cat(split).max() == 39
    assert part[split.test].y.bincount().tolist() == [5, 5]


def test_regression_is_split_without_classes() -> None:
    split = random_split(make_dataset([0.5 * i for i in range(20)]), val=0.1, test=0.2, seed=0)
    assert [len(part) for part in split] == [14, 2, 4]


def test_no_validation_graphs() -> None:
    split = random_split(make_dataset([0, 1] * 10), val=0, test=0.2)
    assert [len(part) for part in split] == [16, 0, 4]


@pytest.mark.parametrize(("val", "test"), [(0.5, 0.5), (-0.1, 0.2), (0.0, 1.0)])
def test_shares_without_meaning_are_refused(val: float, test: float) -> None:
    with pytest.raises(ValueError, match="shares must be non-negative and sum to less than 1"):
        random_split(make_dataset([0, 1] * 10), val=val, test=test)


def test_parts_that_cannot_hold_all_classes() -> None:
    with pytest.raises(ValueError, match="test: 3 of 10 graphs cannot include all 10 classes"):
        random_split(make_dataset(list(range(10))), val=0, test=0.3)
    few = make_dataset([5] + [7] * 9)
    with pytest.raises(ValueError, match="class 5 has only one graph"):
        random_split(few, val=0, test=0.3)
    assert len(random_split(few, val=0, test=0).train) == 10


def test_a_tenth_is_held_out_for_each_part_by_default() -> None:
    dataset = make_dataset([0, 1] * 30)
    found, expected = random_split(dataset), random_split(dataset, val=0.1, test=0.1, seed=0)
    assert [len(part) for part in found] == [48, 6, 6]
    assert all(one.equal(other) for one, other in zip(found, expected, strict=True))


def test_fewest_graphs_of_a_class() -> None:
    """As many held-out graphs as classes are enough, and two graphs of a class are: one for each of two parts."""
    dataset = make_dataset([3, 5, 5, 3])
    split = random_split(dataset, val=0, test=0.5)
    assert dataset[split.train].y.sort().values.tolist() == dataset[split.test].y.sort().values.tolist() == [0, 1]
    with pytest.raises(ValueError, match="validation: 1 of 40 graphs cannot include all 2 classes"):
        random_split(make_dataset([0, 1] * 20), val=0.025, test=0.25)


def test_shares_are_of_all_graphs() -> None:
    """The validation graphs are a share of all graphs, not of those that are left after the test graphs."""
    split = random_split(make_dataset([0.5] * 100), val=0.3, test=0.4)
    assert [len(part) for part in split] == [30, 30, 40]
    assert all(part.equal(part.sort().values) for part in split)

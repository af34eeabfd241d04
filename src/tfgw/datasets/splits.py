"""Cut a dataset into training, validation and test graphs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfgw.datasets.from_data import Graphs, as_graph_dataset


class IndexSplit(NamedTuple):
    """Sorted positions in the dataset: ``dataset[split.train]`` and so on."""

    train: Tensor
    val: Tensor
    test: Tensor


def random_split(dataset: Graphs, *, val: float = 0.1, test: float = 0.1, seed: int = 0) -> IndexSplit:
    """Draw ``val`` and ``test`` shares of the graphs, each with the class proportions of the whole.

    Regression targets and unlabelled graphs have no classes to keep in proportion. A seed gives one split.
    """
    if min(val, test) < 0 or val + test >= 1:
        raise ValueError(f"val={val}, test={test}: shares are at least 0 and leave something to train on")
    dataset = as_graph_dataset(dataset)
    labels = dataset.y if dataset.classes else None
    size = len(dataset)
    counts = round(test * size), round(val * size)
    if labels is not None:
        _check_counts(labels, dataset.classes, dict(zip(("test", "validation"), counts, strict=True)))
    kept, test_part = _draw(torch.arange(size), labels, count=counts[0], seed=seed)
    train_part, val_part = _draw(kept, labels, count=counts[1], seed=seed)
    return IndexSplit(train_part, val_part, test_part)


def _check_counts(labels: Tensor, classes: Sequence[Any], counts: dict[str, int]) -> None:
    """Raise ``ValueError`` if parts of these sizes cannot have graphs of each class."""
    present, graphs = labels.unique(return_counts=True)
    for part, count in counts.items():
        if 0 < count < len(present):
            raise ValueError(
                f"{part}: {count} of {len(labels)} graphs cannot be of all {len(present)} classes; set another share"
                " aside, or none, or predict values"
            )
    parts = 1 + sum(count > 0 for count in counts.values())
    if parts > 1 and int(graphs.min()) < 2:
        label = classes[int(present[graphs.argmin()])]
        raise ValueError(f"class {label!r} has one graph alone, which cannot be both in training and held out")


def _draw(indices: Tensor, labels: Tensor | None, *, count: int, seed: int) -> tuple[Tensor, Tensor]:
    if count == 0:
        return indices, indices[:0]
    from sklearn.model_selection import train_test_split  # takes a second to load, and few calls need it

    stratify = None if labels is None else labels[indices].numpy()
    kept, drawn = train_test_split(indices.numpy(), test_size=count, random_state=seed, stratify=stratify)
    return torch.from_numpy(kept).sort().values, torch.from_numpy(drawn).sort().values

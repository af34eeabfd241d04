"""Split a dataset into training, validation and test graphs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfgw.datasets.from_data import Graphs, as_graph_dataset


class IndexSplit(NamedTuple):
    """Sorted positions of the graphs of each part: ``dataset[split.train]`` and so on."""

    train: Tensor
    val: Tensor
    test: Tensor


def random_split(dataset: Graphs, *, val: float = 0.1, test: float = 0.1, seed: int = 0) -> IndexSplit:
    """Hold out shares ``val`` and ``test`` of the graphs, stratified by class.

    Regression targets and unlabelled graphs are not stratified. Equal seeds give equal splits.
    """
    if min(val, test) < 0 or val + test >= 1:
        raise ValueError(f"val={val}, test={test}: shares must be non-negative and sum to less than 1")
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
                f"{part}: {count} of {len(labels)} graphs cannot include all {len(present)} classes; hold out a larger"
                " share, or none, or use regression"
            )
    parts = 1 + sum(count > 0 for count in counts.values())
    if parts > 1 and int(graphs.min()) < 2:
        label = classes[int(present[graphs.argmin()])]
        raise ValueError(f"class {label!r} has only one graph, which cannot be both in training and held out")


def _draw(indices: Tensor, labels: Tensor | None, *, count: int, seed: int) -> tuple[Tensor, Tensor]:
    if count == 0:
        return indices, indices[:0]
    from sklearn.model_selection import train_test_split  # takes a second to import, and is rarely needed

    stratify = None if labels is None else labels[indices].numpy()
    kept, drawn = train_test_split(indices.numpy(), test_size=count, random_state=seed, stratify=stratify)
    return torch.from_numpy(kept).sort().values, torch.from_numpy(drawn).sort().values

"""The unit of work: one model with one configuration, trained on one part of a dataset and tested on another."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Everything that the result of a cell depends on. Experiments share equal cells.

    Args:
        dataset: Name of the dataset.
        model: Import path of the classifier, ``"package.module:Class"``.
        configuration: Constructor parameters of the classifier.
        protocol: Name of the protocol that runs it; see :mod:`tfgw.paper.protocols`.
        split_seed: Seed of the split or of the generated dataset; under the protocol ``paper``, the number of the
            hold-out.
        fold: Number of the fold in the split.
        seed: Number of the run on this fold.
        grouped: Whether to keep isomorphic graphs on the same side of every split.
        splits: SHA-256 of the file of published splits. ``None`` means random splits.
        collect: Additional information to record about the trained model.
        graphs: Number of graphs of the dataset to use (default: all).
    """

    dataset: str
    model: str
    configuration: dict[str, Any]
    protocol: str
    split_seed: int = 0
    fold: int = 0
    seed: int = 0
    grouped: bool = False
    splits: str | None = None
    collect: str | None = None
    graphs: int | None = None

    @property
    def key(self) -> str:
        """Unique name: dataset, class and a hash of all fields."""
        text = json.dumps(self.as_dict(), sort_keys=True)
        return f"{self.group}/{hashlib.sha256(text.encode()).hexdigest()[:20]}"

    @property
    def group(self) -> str:
        """Dataset and class; records of a group are stored together."""
        return f"{Path(self.dataset).stem}/{self.model.rpartition(':')[2]}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON data. ``graphs`` is omitted if all are used, so that older records stay valid."""
        return {name: value for name, value in vars(self).items() if name != "graphs" or value is not None}

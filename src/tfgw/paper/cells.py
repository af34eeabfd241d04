"""The unit of work: one model with one configuration, trained on one part of a dataset and measured on another."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Everything that its result depends on. Equal cells are the same cell, whichever experiment asks for them.

    Args:
        dataset: Name of the dataset.
        model: Import path of the classifier, ``"package.module:Class"``.
        configuration: Its constructor parameters.
        protocol: Name of the protocol that runs it; see :mod:`tfgw.paper.protocols`.
        split_seed: Seed of the split or of the generated dataset; under the protocol ``paper``, the number of the
            hold-out.
        fold: Number of the fold in the split.
        seed: Number of the run on this fold.
        grouped: Whether isomorphic graphs are on the same side of every split.
        splits: SHA-256 of the file of published splits; ``None``: splits are drawn.
        collect: What to record about the trained model besides its scores.
        graphs: Number of graphs of the dataset that are used; ``None``: all.
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
        """Dataset and class; records of one group are stored together."""
        return f"{Path(self.dataset).stem}/{self.model.rpartition(':')[2]}"

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON. ``graphs`` is left out where all are used: records older than this field stay valid."""
        return {name: value for name, value in vars(self).items() if name != "graphs" or value is not None}

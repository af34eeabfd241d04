"""The unit of work: one model with one configuration, trained on one part of a dataset and measured on another."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Everything that its outcome depends on. Equal cells are the same cell, whichever table asks for them.

    Args:
        dataset: Name of the dataset.
        model: Import path of the classifier, ``"package.module:Class"``.
        configuration: Its constructor parameters.
        protocol: ``"fair"``, ``"paper"``, ``"synthetic"`` or ``"timing"``.
        split_seed: Of the split; of the protocol ``paper``, the number of the hold-out.
        fold: Which of the split's folds.
        seed: Which of several runs on the same fold.
        grouped: Whether isomorphic graphs are on the same side of every split.
        splits: SHA-256 of the file that the splits come from; ``None``: they are drawn.
        collect: What to keep of the trained model besides its scores.
        graphs: How many graphs of the dataset are used; ``None``: all.
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
        """A name that no other cell has: dataset, class and a hash of all the rest."""
        text = json.dumps(self.as_dict(), sort_keys=True)
        return f"{self.group}/{hashlib.sha256(text.encode()).hexdigest()[:20]}"

    @property
    def group(self) -> str:
        """Dataset and class: records of one group lie together."""
        return f"{Path(self.dataset).stem}/{self.model.rpartition(':')[2]}"

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it; ``graphs`` is part of it only where it says something."""
        fields = asdict(self)
        return fields if self.graphs is not None else {key: fields[key] for key in fields if key != "graphs"}

"""The dataset and split of a run, as data that can be stored with it."""

from dataclasses import dataclass
from pathlib import Path

from tfgw.datasets import (
    Features,
    GraphDataset,
    NodeEncoding,
    TableColumns,
    load,
    random_split,
)
from tfgw.datasets.loading import is_path, is_table
from tfgw.datasets.synthetic import GENERATORS
from tfgw.datasets.tu_catalog import full_name
from tfgw.train import Parts


@dataclass(frozen=True, kw_only=True)
class Source:
    """A dataset and its split. Generated datasets have their own split, without validation graphs."""

    dataset: str
    data_dir: str | None = None
    features: Features = "auto"
    validation: float = 0.0
    test: float = 0.1
    seed: int = 0
    smiles: str | None = None
    target: str | None = None
    id: str | None = None
    values: bool = False
    content: str | None = None
    """Digest of the dataset at the time of training."""

    @property
    def is_synthetic(self) -> bool:
        """Whether the dataset is generated."""
        return self.dataset in GENERATORS

    def is_of(self, dataset: str) -> bool:
        """Whether ``dataset``, a name or a path, refers to this dataset."""
        return full_name(portable(dataset)) == full_name(self.dataset)

    def load(self, encoding: NodeEncoding | None = None, *, labelled: bool = True) -> GraphDataset:
        """Load all graphs; for generated datasets, only the test graphs.

        Args:
            encoding: Node encoding of a trained model. With it, the graphs need no targets.
            labelled: Whether to skip rows of a table that have no target, as in training.
        """
        if self.is_synthetic:
            return GENERATORS[self.dataset](seed=self.seed).test
        if self.smiles is not None and not is_table(self.dataset):
            raise ValueError(f"--smiles: {self.dataset} is not a CSV or Parquet file")
        found = load(
            self.dataset,
            data_dir=self.data_dir,
            features=self.features,
            encoding=encoding,
            columns=self.columns,
            labelled=labelled,
        )
        return found.with_values() if self.values else found

    @property
    def columns(self) -> TableColumns | None:
        """Columns of a table of molecules."""
        if self.smiles is None:
            return None
        return TableColumns(smiles=self.smiles, target=self.target, identifier=self.id, values=self.values)

    def parts(self) -> Parts:
        """Load and split the graphs."""
        if self.is_synthetic:
            split = GENERATORS[self.dataset](seed=self.seed)
            return Parts(split.train, None, split.test)
        return self.split(self.load())

    def split(self, dataset: GraphDataset) -> Parts:
        """Split the graphs as in training; they must be the same graphs."""
        if self.content not in (None, dataset.content_digest()):
            raise ValueError(f"{self.dataset}: has changed since the model was trained, so its test graphs are unknown")
        return Parts.of(dataset, random_split(dataset, val=self.validation, test=self.test, seed=self.seed))


def parts_by_name(parts: Parts) -> dict[str, GraphDataset]:
    """Return the existing parts by the names that a report uses."""
    named = {"training": parts.train, "validation": parts.validation, "test": parts.test}
    return {name: part for name, part in named.items() if part is not None}


def portable(dataset: str) -> str:
    """Return a name unchanged and a path as an absolute path, which is valid in any working directory."""
    return str(Path(dataset).expanduser().resolve()) if is_path(dataset) else dataset

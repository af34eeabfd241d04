"""Where graphs come from, as data that a run can write down and read again."""

from dataclasses import dataclass
from pathlib import Path

from tfgw.datasets import (
    Features,
    GraphDataset,
    NodeEncoding,
    TableColumns,
    four_cycles,
    load,
    random_split,
    skip_circles,
)
from tfgw.datasets.catalog import full_name
from tfgw.datasets.loading import is_path, is_table
from tfgw.train import Parts

SYNTHETIC = {"SKIP-CIRCLES": skip_circles, "4-CYCLES": four_cycles}


@dataclass(frozen=True, kw_only=True)
class Source:
    """A dataset and how it is split. The generated ones have their own split, without validation graphs."""

    dataset: str
    data_dir: str | None = None
    features: Features = "auto"
    validation: float = 0.1
    test: float = 0.1
    seed: int = 0
    smiles: str | None = None
    target: str | None = None
    id: str | None = None
    values: bool = False
    content: str | None = None
    """Digest of the dataset when a model was trained on it."""

    @property
    def is_synthetic(self) -> bool:
        """Whether the graphs are generated."""
        return self.dataset in SYNTHETIC

    def is_of(self, dataset: str) -> bool:
        """Whether ``dataset``, a name or a path as the user gives it, is this one."""
        return full_name(portable(dataset)) == full_name(self.dataset)

    def load(self, encoding: NodeEncoding | None = None, *, labelled: bool = True) -> GraphDataset:
        """All graphs; of the generated datasets, the test graphs.

        Args:
            encoding: That of a model, which then makes the features; the graphs need no targets.
            labelled: Whether rows of a table that have no target are left out, as in training.
        """
        if self.is_synthetic:
            return SYNTHETIC[self.dataset](seed=self.seed).test
        if self.smiles is not None and not is_table(self.dataset):
            raise ValueError(f"--smiles: {self.dataset} is no CSV or Parquet file")
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
        """Of a table of molecules."""
        if self.smiles is None:
            return None
        return TableColumns(smiles=self.smiles, target=self.target, identifier=self.id, values=self.values)

    def parts(self) -> Parts:
        """The graphs, split."""
        if self.is_synthetic:
            split = SYNTHETIC[self.dataset](seed=self.seed)
            return Parts(split.train, None, split.test)
        return self.split(self.load())

    def split(self, dataset: GraphDataset) -> Parts:
        """Split the graphs as for training, which they must be those of."""
        if self.content not in (None, dataset.content_digest()):
            raise ValueError(
                f"{self.dataset}: has changed since the model was trained, so its test graphs are not known"
            )
        indices = random_split(dataset, val=self.validation, test=self.test, seed=self.seed)
        validation, test = (dataset[part] if len(part) else None for part in indices[1:])
        return Parts(dataset[indices.train], validation, test)


def parts_by_name(parts: Parts) -> dict[str, GraphDataset]:
    """The parts that there are, by the names that a report uses."""
    named = {"training": parts.train, "validation": parts.validation, "test": parts.test}
    return {name: part for name, part in named.items() if part is not None}


def portable(dataset: str) -> str:
    """The name of a dataset as it is; a path made absolute, so that it holds in any working directory."""
    return str(Path(dataset).expanduser().resolve()) if is_path(dataset) else dataset

"""The paper's tables and figures as data: the contents of the TOML files in ``experiments/``, or of your own.

An experiment has rows (a model with its fixed settings, its grid, and the paper's results) and datasets. A row on one
dataset under one protocol is a *series*: the cells behind one result of a table. A row may be ``like`` a row of another
experiment; both then have the same cells.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from tfgw.train.recipes import OF_TFGW_LAYERS, recipe_of

PRESETS = ("smoke", "quick", "full")
KINDS = dict.fromkeys(("IMDB-BINARY", "IMDB-MULTI", "COLLAB"), "social")
CLASSES = {
    "MUTAG": 2,
    "PTC_MR": 2,
    "ENZYMES": 6,
    "PROTEINS_full": 2,
    "NCI1": 2,
    "IMDB-BINARY": 2,
    "IMDB-MULTI": 3,
    "COLLAB": 3,
    "4-CYCLES": 2,
    "SKIP-CIRCLES": 10,
}


class Unit(NamedTuple):
    """Format of a fraction in a table."""

    scale: int
    digits: int

    def show(self, value: float | None) -> str:
        """Format a value; a missing value is a dash."""
        return "-" if value is None else f"{self.scale * value:.{self.digits}f}"


UNITS = {"percent": Unit(100, digits=1), "fraction": Unit(1, digits=2)}


class NotRun(NamedTuple):
    """The reason why a model is not run on some datasets with some presets."""

    reason: str
    datasets: tuple[str, ...]
    presets: tuple[str, ...] = PRESETS


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model of an experiment.

    Args:
        model: Name on the command line.
        title: Name in the table.
        path: Import path of a scikit-learn classifier for graphs, ``"package.module:Class"``. ``None`` if the row shows
            only the paper's results.
        fixed: Constructor parameters. A ``recipe`` is a name, or a table of settings that differ from the paper's.
        grid: By preset, constructor parameters with lists of values.
        presets: By preset, settings that differ for this model; see ``presets.toml``.
        by_epochs: Whether the model is trained in epochs.
        has_tfgw_layer: Whether the model has a TFGW layer. Otherwise, its recipe omits the settings of such layers, so
            that records do not depend on them.
        collect: Additional information to record about a trained model: ``"embedding"`` or nothing.
        paper: By dataset, the paper's mean and standard deviation (or parameters in thousands and milliseconds, or a
            statistic).
        note: Text to show below the table.
        not_run: Reasons why the model is not run on some datasets. A table shows them instead of results.
        protocols: By protocol of the experiment, the protocol that measures this row instead. If it is not empty, the
            row belongs to tables of these protocols only.
    """

    model: str
    title: str
    path: str | None = None
    fixed: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, dict[str, Any]] = field(default_factory=dict)
    presets: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_epochs: bool = True
    has_tfgw_layer: bool = True
    collect: str | None = None
    paper: dict[str, tuple[float, ...]] = field(default_factory=dict)
    note: str | None = None
    not_run: tuple[NotRun, ...] = ()
    protocols: dict[str, str] = field(default_factory=dict)

    def reason_not_to_run(self, dataset: str, preset: str) -> str | None:
        """Return why the model is not run on a dataset with a preset; ``None`` if it is."""
        reasons = (entry.reason for entry in self.not_run if dataset in entry.datasets and preset in entry.presets)
        return next(reasons, None)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or a figure.

    Args:
        name: Name on the command line.
        title: Title.
        datasets: Names of datasets.
        rows: The models.
        protocols: Names of its protocols; the first is the default. If empty, nothing is run, and the rows are
            statistics of the datasets.
        presets: By preset, the settings of this experiment.
        unit: Format of accuracies in a table.
        splits: By dataset, the SHA-256 of the file of published splits that its cells use by default.
        figure: Import path of the function that plots it. ``None`` for a table.
    """

    name: str
    title: str
    datasets: tuple[str, ...]
    rows: tuple[Row, ...]
    protocols: tuple[str, ...]
    presets: dict[str, dict[str, Any]]
    unit: Unit = UNITS["percent"]
    splits: dict[str, str] = field(default_factory=dict)
    figure: str | None = None

    @property
    def needs_runs(self) -> bool:
        """Whether its results come from cells."""
        return bool(self.protocols)

    def setting(self, row: Row, dataset: str, preset: str, name: str) -> Any:
        """Return ``epochs``, ``graphs``, ``folds``, ``holdouts``, ``runs`` or ``seeds`` of a preset."""
        values = self.presets[preset] | row.presets.get(preset, {})
        return _for_dataset(values[name], dataset)

    def configurations(self, row: Row, dataset: str, preset: str) -> list[dict[str, Any]]:
        """Return the constructor parameters of every configuration, in the order of the grid."""
        by_dataset = {name: value for name, value in row.fixed.items() if name != "recipe"}
        fixed = {name: _for_dataset(value, dataset) for name, value in by_dataset.items()}
        fixed |= {name: value for name, value in row.fixed.items() if name not in by_dataset}
        epochs = self.setting(row, dataset, preset, "epochs")
        if row.by_epochs and epochs != "recipe":
            fixed["epochs"] = epochs
        grid_preset = "quick" if preset == "smoke" else preset
        grid = {name: _for_dataset(values, dataset) for name, values in row.grid.get(grid_preset, {}).items()}
        found = [fixed | dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        return [_with_templates(_with_recipe(configuration, row), dataset) for configuration in found]


def names() -> list[str]:
    """Return the names of all experiments of the paper."""
    files = resources.files("tfgw.paper.experiments").iterdir()
    found = {file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")}
    return sorted(found - {"presets", "grids", "splits"})


def load_experiment(name: str) -> Experiment:
    """Load an experiment of the paper by name, or your own experiment by the path of its ``.toml`` file."""
    if name.endswith(".toml"):
        text = Path(name).read_text()
    elif name in names():
        text = _shipped(name)
    else:
        raise ValueError(f"no experiment {name!r}; choose one of {', '.join(names())}, or a .toml file")
    try:
        return _experiment(Path(name).stem, _with_base(tomllib.loads(text)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"experiment {name}: invalid file: {error!r}") from error


def _shipped(name: str) -> str:
    return (resources.files("tfgw.paper.experiments") / f"{name}.toml").read_text()


def _with_base(table: dict[str, Any]) -> dict[str, Any]:
    """Resolve ``like``, the name of an experiment of the paper from which missing entries are taken."""
    if "like" not in table:
        return table
    if table["like"] not in names():
        raise ValueError(f"like = {table['like']!r}: not an experiment of the paper")
    return tomllib.loads(_shipped(table["like"])) | table


def _experiment(name: str, table: dict[str, Any]) -> Experiment:
    shared_presets, grids = tomllib.loads(_shipped("presets")), tomllib.loads(_shipped("grids"))
    grids |= table.get("grids", {})
    return Experiment(
        name=name,
        title=table["title"],
        datasets=tuple(table["datasets"]),
        rows=tuple(_row(row, grids) for row in table.get("rows", ())),
        protocols=tuple(table.get("protocols", ())),
        presets={preset: shared_presets[preset] | table.get("presets", {}).get(preset, {}) for preset in PRESETS},
        unit=UNITS[table.get("unit", "percent")],
        splits=_splits(table.get("splits", "own")),
        figure=table.get("figure"),
    )


def _splits(kind: str) -> dict[str, str]:
    if kind not in ("own", "published"):
        raise ValueError(f"splits = {kind!r}: must be 'own' or 'published'")
    return tomllib.loads(_shipped("splits")) if kind == "published" else {}


def _row(row: dict[str, Any], grids: dict[str, Any]) -> Row:
    entries = {"path" if name == "class" else name: value for name, value in row.items() if name != "like"}
    if isinstance(grid := row.get("grid"), str):
        entries["grid"] = grids[grid]
    if "paper" in row:
        entries["paper"] = {dataset: tuple(values) for dataset, values in row["paper"].items()}
    if "not_run" in row:
        entries["not_run"] = tuple(_not_run(**entry) for entry in row["not_run"])
    return replace(_row_of_another(row["like"]), **entries) if "like" in row else Row(**entries)


def _row_of_another(name: str) -> Row:
    """Return a row of an experiment of the paper, with the presets of that experiment: ``"recipe/gin"``."""
    experiment, _, model = name.partition("/")
    if experiment not in names():
        raise ValueError(f"like = {name!r}: {experiment!r} is not an experiment of the paper")
    other = load_experiment(experiment)
    found = next((row for row in other.rows if row.model == model), None)
    if found is None:
        raise ValueError(f"like = {name!r}: {experiment} has no such row")
    return replace(found, presets={preset: other.presets[preset] | found.presets.get(preset, {}) for preset in PRESETS})


def _not_run(*, reason: str, datasets: Sequence[str], presets: Sequence[str] = PRESETS) -> NotRun:
    for preset in presets:
        if preset not in PRESETS:
            raise ValueError(f"not_run: preset {preset!r}: unknown; choose from {', '.join(PRESETS)}")
    return NotRun(reason, tuple(datasets), tuple(presets))


def _for_dataset(value: Any, dataset: str) -> Any:
    """Return the value for a dataset; a table has entries by dataset, by kind of dataset, or a ``default``."""
    if not isinstance(value, dict):
        return value
    for name in (dataset, KINDS.get(dataset, "bio"), "default"):
        if name in value:
            return value[name]
    raise ValueError(f"no value for {dataset} and no default: {value}")


def _with_recipe(configuration: dict[str, Any], row: Row) -> dict[str, Any]:
    """Replace the name of a recipe by its settings, so that records become invalid when the recipe changes."""
    recipe = configuration.get("recipe", "paper")
    if recipe == "paper":
        return configuration
    ignored = () if row.has_tfgw_layer else OF_TFGW_LAYERS
    settings = {name: value for name, value in recipe_of(recipe).items() if name not in ignored}
    return configuration | {"recipe": settings}


def _with_templates(configuration: dict[str, Any], dataset: str) -> dict[str, Any]:
    per_class = configuration.pop("templates_per_class", None)
    if per_class is not None:
        if dataset not in CLASSES:
            raise ValueError(f"templates_per_class: the classes of {dataset} are not known; set num_templates")
        configuration["num_templates"] = per_class * CLASSES[dataset]
    return dict(sorted(configuration.items()))


def select(choices: Sequence[str], wanted: Sequence[str] | None, what: str) -> list[str]:
    """Return those of ``choices`` that are wanted (default: all); raise ``ValueError`` for unknown names."""
    unknown = [name for name in wanted or () if name not in choices]
    if unknown:
        raise ValueError(f"{what} {unknown[0]!r}: not in this experiment; choose from {', '.join(choices)}")
    return [name for name in choices if not wanted or name in wanted]

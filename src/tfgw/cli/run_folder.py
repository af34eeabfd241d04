"""The folder of a run: created after all options are checked, removed if training never started, or resumed."""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any

from tfgw.datasets.paths import written_whole
from tfgw.train import TrainConfig
from tfgw.train.checkpoint import FILE_NAME
from tfgw.train.schedules import depends_on_epochs

OPTIONS_FILE = "run.json"

CHANGEABLE = ("epochs", "checkpoint_seconds", "data_dir", "tensorboard")
"""Options that may change when a run is resumed."""

REQUIRED = ("dataset", "data_dir", "features", "validation", "test", "seed", "task", "recipe")
"""Options that the file of a run must contain."""


@contextmanager
def new_folder(args: argparse.Namespace, options: dict[str, Any]) -> Iterator[Path]:
    """Create the folder of a new run (default: the next free ``runs/DATASET-NUMBER``) and write its options.

    An error before the first checkpoint removes the folder, so that the corrected command can use it again.
    """
    folder, created = _empty_folder(args)
    try:
        write_json(folder / OPTIONS_FILE, options)
        yield folder
    except Exception:
        if not (folder / FILE_NAME).exists():
            _remove(folder, created)
        raise


def _empty_folder(args: argparse.Namespace) -> tuple[Path, list[Path]]:
    """Return the folder, and the parents that were created for it, innermost first."""
    if args.output is not None:
        folder: Path = args.output
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FileExistsError(f"--output {folder}: already exists; choose another folder, or use --resume")
        created = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        return folder, created
    name, number, runs = Path(args.dataset).stem, 1, Path("runs")
    outer = [] if runs.exists() else [runs]
    while True:
        folder = runs / f"{name}-{number}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return folder, [folder, *outer]


def _remove(folder: Path, created: list[Path]) -> None:
    for path in folder.iterdir():
        rmtree(path) if path.is_dir() else path.unlink()
    for path in created:
        if not any(path.iterdir()):
            path.rmdir()


def resumed_options(folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of an interrupted run, updated by the given ones of :data:`CHANGEABLE`.

    Raises:
        ValueError: If another given option differs; the message names it.
    """
    options = read_options(folder)
    changed = {name: value for name, value in given.items() if options.get(name) != value}
    fixed = [name for name in changed if name not in CHANGEABLE]
    if fixed:
        text = " and ".join(f"{_option(name)} {_shown(options.get(name))}" for name in fixed)
        raise ValueError(
            f"--resume {folder}: the run has {text}, which cannot be changed to"
            f" {' and '.join(_shown(changed[name]) for name in fixed)}; leave out {', '.join(map(_option, fixed))}"
        )
    return options | changed


def read_options(folder: Path) -> dict[str, Any]:
    """Read the options that a run wrote when it started."""
    path = folder / OPTIONS_FILE
    if not path.is_file():
        raise FileNotFoundError(f"--resume {folder}: not the folder of a run: it has no {OPTIONS_FILE}")
    try:
        options: dict[str, Any] = json.loads(path.read_text())
        if missing := [name for name in REQUIRED if name not in options]:
            raise ValueError(f"no {missing[0]}")
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path}: not the options of a run ({error})") from None
    return options


@contextmanager
def resumed_folder(folder: Path, options: dict[str, Any], config: TrainConfig) -> Iterator[Path]:
    """Open the folder of a resumed run, and write its current options.

    Raises:
        ValueError: If the number of epochs changes and the learning rate schedule depends on it.
    """
    before = read_options(folder)
    has_begun = (folder / FILE_NAME).exists()
    if options.get("epochs") != before.get("epochs") and depends_on_epochs(config.schedule) and has_begun:
        raise ValueError(
            f"--resume {folder}: --epochs cannot be changed, because the learning rate schedule {config.schedule!r}"
            " depends on it; only runs with --recipe paper can be extended"
        )
    if options != before:
        write_json(folder / OPTIONS_FILE, options)
    yield folder


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write a JSON file atomically."""
    with written_whole(path) as temporary:
        temporary.write_text(json.dumps(data, indent=1) + "\n")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _shown(value: Any) -> str:
    return "its default" if value is None else " ".join(map(str, value)) if isinstance(value, list) else str(value)

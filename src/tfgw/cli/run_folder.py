"""The folder of a run: made once all options are checked, removed if training never began, and resumed."""

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

OPTIONS_FILE = "run.json"

CHANGEABLE = ("epochs", "checkpoint_seconds", "data_dir", "tensorboard")
"""Options that a resumed run may have in another form than before."""

REQUIRED = ("dataset", "data_dir", "features", "validation", "test", "seed", "task", "recipe")
"""Options without which a file is not that of a run."""


@contextmanager
def new_folder(args: argparse.Namespace, options: dict[str, Any]) -> Iterator[Path]:
    """A folder with the options of a new run: the one that was asked for, or the next free ``runs/DATASET-NUMBER``.

    An error before the first checkpoint removes it, so that the corrected command can be given again.
    """
    folder, made = _empty_folder(args)
    try:
        write_json(folder / OPTIONS_FILE, options)
        yield folder
    except Exception:
        if not (folder / FILE_NAME).exists():
            _remove(folder, made)
        raise


def _empty_folder(args: argparse.Namespace) -> tuple[Path, list[Path]]:
    """The folder, and those that were made for it, the innermost first."""
    if args.output is not None:
        folder: Path = args.output
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FileExistsError(f"--output {folder}: already exists; choose another, or --resume it")
        made = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        return folder, made
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


def _remove(folder: Path, made: list[Path]) -> None:
    for path in folder.iterdir():
        rmtree(path) if path.is_dir() else path.unlink()
    for path in made:
        if not any(path.iterdir()):
            path.rmdir()


def resumed_options(folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    """The options of an interrupted run; those of :data:`CHANGEABLE` as given now.

    Raises:
        ValueError: If others are given that differ, by name.
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
    """The options that a run wrote down when it began."""
    path = folder / OPTIONS_FILE
    if not path.is_file():
        raise FileNotFoundError(f"--resume {folder}: not the folder of a run, it has no {OPTIONS_FILE}")
    try:
        options: dict[str, Any] = json.loads(path.read_text())
        if missing := [name for name in REQUIRED if name not in options]:
            raise ValueError(f"no {missing[0]}")
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path}: not the options of a run ({error})") from None
    return options


@contextmanager
def resumed_folder(folder: Path, options: dict[str, Any], config: TrainConfig) -> Iterator[Path]:
    """The folder of a run that goes on, with its options as they are now.

    Raises:
        ValueError: If the run has another number of epochs and its learning rates depend on that.
    """
    before = read_options(folder)
    has_begun = (folder / FILE_NAME).exists()
    if options.get("epochs") != before.get("epochs") and config.schedule != "constant" and has_begun:
        raise ValueError(
            f"--resume {folder}: --epochs cannot be changed, as the learning rates of the schedule {config.schedule!r}"
            " depend on it; a run with --recipe paper can be extended"
        )
    if options != before:
        write_json(folder / OPTIONS_FILE, options)
    yield folder


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write a file whole, or not at all."""
    with written_whole(path) as temporary:
        temporary.write_text(json.dumps(data, indent=1) + "\n")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _shown(value: Any) -> str:
    return "its default" if value is None else " ".join(map(str, value)) if isinstance(value, list) else str(value)

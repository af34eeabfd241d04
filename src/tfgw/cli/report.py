"""``tfgw report``."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfgw.cli.file_names import HISTORY_FILE, REPORT_FILE, RESULTS_FILE
from tfgw.cli.model_inputs import find_model, find_parts
from tfgw.cli.output import CommandResult
from tfgw.cli.run_folder import OPTIONS_FILE
from tfgw.train import EpochRecord
from tfgw.train.history import read_records


def run(args: argparse.Namespace) -> CommandResult:
    """Write the report of a model."""
    trained = find_model(args)
    parts = find_parts(args, trained)
    folder: Path = args.model if args.model.is_dir() else args.model.parent
    path: Path = args.output or folder / REPORT_FILE
    from tfgw.report import model_report  # matplotlib is slow to import and optional

    page = model_report(
        trained,
        parts,
        name=Path(next(iter(parts.values())).name).stem,
        options=_options(folder),
        history=_history(folder),
        graphs=args.graph,
        method=args.map,
    )
    page.write(path)
    return CommandResult({"report": str(path), "bytes": path.stat().st_size}, f"wrote {path}; open it in a browser")


def _options(folder: Path) -> Mapping[str, Any]:
    """Return the options of a run; for a finished run, with the values that were used."""
    for name in (RESULTS_FILE, OPTIONS_FILE):
        if (folder / name).is_file():
            data: dict[str, Any] = json.loads((folder / name).read_text())
            options: dict[str, Any] = data.get("options", data)
            return options
    return {}


def _history(folder: Path) -> Sequence[EpochRecord]:
    path = folder / HISTORY_FILE
    return read_records(json.loads(path.read_text()))[0] if path.is_file() else []

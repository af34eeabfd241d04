"""What ``tfgw train`` adds to a finished run: its report, and the commands that use it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfgw.cli.file_names import MODEL_FILE, REPORT_FILE, RESULTS_FILE
from tfgw.cli.output import table
from tfgw.cli.source import parts_by_name
from tfgw.train import EpochRecord, Parts, TrainedModel


def write_report(
    folder: Path, trained: TrainedModel, parts: Parts, options: dict[str, Any], history: Sequence[EpochRecord] = ()
) -> None:
    """Write the report. A failure is only a warning, because the model is already saved."""
    try:
        from tfgw.report import model_report

        page = model_report(
            trained,
            parts_by_name(parts),
            name=Path(trained.source["dataset"]).stem,
            options=options,
            history=history,
        )
        page.write(folder / REPORT_FILE)
    except ImportError as error:
        print(f"tfgw: no report: {error}", file=sys.stderr)
    except Exception as error:
        print(f"tfgw: no report: {type(error).__name__}: {error} (tfgw report {folder} --debug)", file=sys.stderr)


def next_steps(folder: Path, *, has_test: bool) -> str:
    """Return the files of a finished run, and the commands that use them."""
    files = [
        [f"{folder / MODEL_FILE}", "trained model"],
        [f"{folder / RESULTS_FILE}", "these results and all options"],
    ]
    if (folder / REPORT_FILE).is_file():
        files.append([f"{folder / REPORT_FILE}", "report, open it in a browser"])
    steps = [[f"tfgw predict {folder} --dataset PATH", "predictions for new graphs"]]
    if has_test:
        steps += [
            [f"tfgw evaluate {folder}", "detailed metrics on the test graphs"],
            [f"tfgw check {folder}", "reliability of the distances"],
        ]
    return f"{table(files)}\n\nNext steps:\n{table(steps)}"

"""Files in the folder of a run."""

import argparse
from pathlib import Path

MODEL_FILE, RESULTS_FILE = "model.safetensors", "results.json"
HISTORY_FILE, REPORT_FILE = "history.json", "report.html"


def model_path(args: argparse.Namespace) -> Path:
    """Return the model file of a command, whose option is this file or the folder of its run."""
    path: Path = args.model
    return path / MODEL_FILE if path.is_dir() else path

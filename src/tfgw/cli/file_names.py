"""Files in the folder of a run."""

import argparse
from pathlib import Path

MODEL_FILE, RESULTS_FILE = "model.safetensors", "results.json"
HISTORY_FILE, REPORT_FILE = "history.json", "report.html"


def model_path(args: argparse.Namespace) -> Path:
    """The file of the model that a command names by its file or by the folder of its run."""
    path: Path = args.model
    return path / MODEL_FILE if path.is_dir() else path

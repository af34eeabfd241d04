"""Prepare the GPU for a model in a thread, while the main thread imports other packages and opens files."""

import argparse
import json
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from tfgw.cli.file_names import model_path


def warm_up_gpu(args: argparse.Namespace) -> Thread | None:
    """Start a thread that initialises CUDA and loads the kernels for the model of a command that may run on a GPU.

    The thread ignores errors; the command raises them again.
    """
    if args.accelerator == "cpu" or args.engine != "local":
        return None
    # Import in the main thread, because two threads should not import the same packages.
    import torch

    from tfgw.ot.backends.cuda.kernels import load_forward

    def warm_up() -> None:
        with suppress(Exception):
            solver = solver_settings(model_path(args))
            load_forward(solver.template_nodes, torch.cuda.current_device(), n_starts=solver.n_starts)

    if not torch.cuda.is_available():
        return None
    thread = Thread(target=warm_up, name="tfgw-warm-up", daemon=True)
    thread.start()
    return thread


class SolverSettings(NamedTuple):
    """The settings of a model that determine its kernels."""

    template_nodes: int
    n_starts: int


def solver_settings(path: Path) -> SolverSettings:
    """Read the settings from the description in a model file."""
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        description = json.loads(file.metadata()["tfgw"])["description"]
    architecture = description["architecture"]
    return SolverSettings(int(architecture["template_nodes"]), int(architecture.get("n_starts", 1)))

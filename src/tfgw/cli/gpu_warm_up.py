"""Prepare the GPU for a model in a thread, while the main thread imports other packages and opens files."""

import argparse
import json
from contextlib import suppress
from pathlib import Path
from threading import Thread

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
            load_forward(template_nodes(model_path(args)), torch.cuda.current_device())

    if not torch.cuda.is_available():
        return None
    thread = Thread(target=warm_up, name="tfgw-warm-up", daemon=True)
    thread.start()
    return thread


def template_nodes(path: Path) -> int:
    """Read the number of template nodes from the description in a model file."""
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        description = json.loads(file.metadata()["tfgw"])["description"]
    return int(description["architecture"]["template_nodes"])

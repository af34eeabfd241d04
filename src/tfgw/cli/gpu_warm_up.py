"""Make the GPU ready for a model in a thread, while the main thread imports other packages and opens files."""

import argparse
import json
from contextlib import suppress
from pathlib import Path
from threading import Thread

from tfgw.cli.file_names import model_path


def warm_up_gpu(args: argparse.Namespace) -> Thread | None:
    """Begin to start CUDA and to load the kernels for the model that a command names, if it may run on a GPU.

    Errors are left to the command itself, which meets them again.
    """
    if args.accelerator == "cpu" or args.engine != "local":
        return None
    # In the main thread, because two threads should not import the same packages.
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
    """Template nodes of a model in a file, from its description alone."""
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        description = json.loads(file.metadata()["tfgw"])["description"]
    return int(description["architecture"]["template_nodes"])

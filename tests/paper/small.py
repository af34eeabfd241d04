"""A small experiment on a dataset of its own, and a classifier that needs no training."""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin

from tests.cli.test_cli import write_tu_folder
from tfgw.paper.cells import Cell
from tfgw.paper.experiment import Experiment, load_experiment
from tfgw.paper.records import Record

TFGW = """
class = "tfgw.estimators:TFGWClassifier"
fixed = { num_layers = 0, num_templates = 2, template_nodes = 4 }
"""
CYCLES = """
class = "tests.paper.small:CycleFinder"
by_epochs = false
"""
GRID = CYCLES + "grid = { quick = { wrong = [0.5, 0.2, 0.3] } }\n"


class CycleFinder(ClassifierMixin, BaseEstimator):
    """Knows the answer: class 0 (label 3) is a cycle. ``wrong`` is what it claims to get wrong in the validation."""

    def __init__(self, *, wrong: float = 0.0, random_state: int = 0, error: str | None = None) -> None:
        self.wrong = wrong
        self.random_state = random_state
        self.error = error

    def fit(self, graphs: list[Any], y: np.ndarray, *, validation: tuple[Any, Any] | None = None) -> "CycleFinder":
        if self.error == "exit":
            os._exit(9)
        if self.error is not None and self.error.startswith("hang "):
            Path(self.error.removeprefix("hang ")).touch()
            time.sleep(600)
        if self.error == "full":
            raise torch.OutOfMemoryError("CUDA out of memory." + " A process has memory in use." * 100)
        if self.error is not None:
            raise ValueError(self.error)
        self.classes_ = np.unique(y)
        self.validation_score_ = 1 - self.wrong
        return self

    def predict(self, graphs: list[Any]) -> np.ndarray:
        return np.array([int(graph.edge_index.shape[1] < 2 * graph.num_nodes) for graph in graphs])


class SizedCycleFinder(CycleFinder):
    """Says how many parameters it has, as the protocol ``timing`` wants to know."""

    num_parameters_ = 3100


class PrecomputingCycleFinder(CycleFinder):
    """Notes what it is given to compute beforehand."""

    given: ClassVar[list[tuple[int, str]]] = []

    def precompute(self, graphs: list[Any], cache: Path) -> None:
        self.given.append((len(graphs), cache.name))


def write_experiment(
    folder: Path, model: str, *, presets: str = "folds = 10\ngraphs = 0", graphs: int = 40, protocol: str = "fair"
) -> Path:
    """A file that describes one row on cycles and paths."""
    data = write_tu_folder(folder / "shapes", graphs=graphs)
    path = folder / "mine.toml"
    path.write_text(
        f"""
title = "mine"
protocols = ["{protocol}"]
datasets = ["{data}"]
[presets.smoke]
epochs = 1
runs = 4
{presets}
[[rows]]
model = "it"
title = "It"
{model}
"""
    )
    return path


def experiment(folder: Path, model: str, **changes: Any) -> Experiment:
    return load_experiment(str(write_experiment(folder, model, **changes)))


def without_times(records: Iterator[Record]) -> list[str]:
    """Records as bytes, but for what another hour or machine changes."""
    return [json.dumps({key: value for key, value in record.items() if key != "run"}) for record in records]


def cell(**changes: Any) -> Cell:
    settings: dict[str, Any] = {"dataset": "MUTAG", "model": "a.b:C", "configuration": {"width": 3}, "protocol": "fair"}
    return Cell(**(settings | changes))


def wait_until(condition: Callable[[], Any], *, seconds: float = 60) -> Any:
    """The first answer of ``condition`` that is true."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)
    return answer


def in_process(job: Callable[[], None]) -> int:
    """Start a job in a process of its own; returns its number."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            job()
            code = 0
        finally:
            os._exit(code)
    return process

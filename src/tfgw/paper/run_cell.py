"""Run one cell, wherever that happens, and write its record."""

import importlib
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from tfgw.datasets import Features, GraphDataset, four_cycles, load, random_split, skip_circles
from tfgw.datasets.paths import cache_folder
from tfgw.paper.cells import Cell
from tfgw.paper.embedding_record import describe_embedding
from tfgw.paper.experiment import SYNTHETIC
from tfgw.paper.isomorphism import isomorphism_groups
from tfgw.paper.machine import machine, versions
from tfgw.paper.protocol import Fold, digest, fair_folds, paper_folds, read_splits, splits_file
from tfgw.paper.records import Record, Records
from tfgw.paper.run_context import RunContext
from tfgw.paper.timing import prediction_times
from tfgw.train import Preprocessing

ATTRIBUTES = ("num_parameters_", "alpha_")
"""Of a fitted model, where it has them."""


class Parts(NamedTuple):
    """Graphs to train on, to choose by (``None``: nothing is chosen), and to measure on."""

    train: GraphDataset
    validation: GraphDataset | None
    test: GraphDataset


def run_cell(cell: Cell, context: RunContext) -> Record:
    """Train, measure, and write the record, also that of a failure."""
    torch.set_num_threads(context.threads)
    start = time.perf_counter()
    record: Record = {"cell": cell.as_dict()}
    times: dict[str, float] = {}
    try:
        record |= {"status": "done", "result": _measure(cell, context, times)}
    except Exception as error:
        record |= {"status": "failed", "error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
    record["run"] = {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - start, 3),
        "threads": context.threads,
        "machine": machine(context.accelerator),
        "versions": versions(),
        **times,
    }
    Records(context.results).put(record)
    return record


def check_inputs(cells: Sequence[Cell], context: RunContext) -> None:
    """Raise an error now, if a dataset, a file of splits or a class cannot be had, and not once for every cell."""
    for path in {cell.model for cell in cells}:
        model_class(path)
    real = {(cell.dataset, cell.splits): cell for cell in cells if cell.dataset not in SYNTHETIC}
    for cell in real.values():
        dataset = load(cell.dataset, data_dir=context.data_dir)
        if cell.splits is not None and context.splits is not None:
            read_splits(splits_file(context.splits, cell.dataset), num_graphs=len(dataset))


def model_class(path: str) -> Any:
    """The class at an import path, ``"package.module:Class"``."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"class {path!r}: cannot be imported, {error}") from error


def _measure(cell: Cell, context: RunContext, times: dict[str, float]) -> dict[str, Any]:
    parts = _parts(cell, context)
    model = _new_model(cell, context)
    if hasattr(model, "precompute"):
        graphs = [graph for part in parts if part is not None for graph in part]
        model.precompute(graphs, cache_folder() / "distances")
    validation = None if parts.validation is None else (list(parts.validation), _labels(parts.validation))
    model.fit(list(parts.train), _labels(parts.train), validation=validation)
    if cell.protocol == "timing":
        times |= prediction_times(model, parts.test)
        return {"num_parameters": model.num_parameters_}
    result: dict[str, Any] = {
        "train_accuracy": float(model.score(list(parts.train), _labels(parts.train))),
        "validation_accuracy": None if validation is None else float(model.validation_score_),
        "test_accuracy": float(model.score(list(parts.test), _labels(parts.test))),
        "train_graphs": len(parts.train),
        "validation_graphs": 0 if validation is None else len(validation[0]),
        "test_graphs": len(parts.test),
    }
    result |= {name.removesuffix("_"): getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}
    if cell.collect == "embedding":
        result["embedding"] = describe_embedding(model, parts._asdict())
    return result


def _new_model(cell: Cell, context: RunContext) -> Any:
    kind = model_class(cell.model)
    known = kind().get_params()
    where = {"accelerator": context.accelerator} if "accelerator" in known else {}
    return kind(**cell.configuration, **where, random_state=_random_state(cell))


def _random_state(cell: Cell) -> int:
    numbers = (cell.split_seed, cell.fold, cell.seed)
    return int(np.random.SeedSequence(numbers).generate_state(1)[0] >> np.uint32(1))


def _parts(cell: Cell, context: RunContext) -> Parts:
    """The graphs of a cell, real-valued features standardised as measured on its training graphs."""
    if cell.dataset in SYNTHETIC:
        generate = four_cycles if cell.dataset == "4-CYCLES" else skip_circles
        split = generate(seed=cell.split_seed)
        return Parts(split.train, None, split.test)
    features = getattr(model_class(cell.model), "node_features", ("auto",))
    dataset = _dataset(cell.dataset, context.data_dir, features, cell.graphs)
    if cell.protocol == "timing":
        return Parts(dataset, None, dataset)
    drawn = (cell.protocol, cell.split_seed, cell.grouped, cell.splits, cell.graphs)
    fold = _folds(cell.dataset, *drawn, context)[cell.fold]
    steps = Preprocessing.fit(dataset[fold.train])
    return Parts(*(steps(dataset[part]) for part in fold))


@lru_cache(maxsize=2)
def _dataset(
    name: str, data_dir: Path | None, wanted: tuple[Features, ...] = ("auto",), graphs: int | None = None
) -> GraphDataset:
    """A dataset, or part of it, with the first of the wanted features that it has."""
    for features in wanted:
        try:
            dataset = load(name, data_dir=data_dir, features=features)
        except ValueError:
            if features == wanted[-1]:
                raise
        else:
            break
    if graphs is None or graphs >= len(dataset):
        return dataset
    return dataset[random_split(dataset, val=0, test=graphs / len(dataset)).test]


@lru_cache(maxsize=8)
def _folds(
    name: str, protocol: str, seed: int, grouped: bool, splits: str | None, graphs: int | None, context: RunContext
) -> list[Fold]:
    dataset = _dataset(name, context.data_dir, graphs=graphs)
    labels = _labels(dataset)
    if splits is not None:
        if context.splits is None:
            raise ValueError("splits: missing, the cell is one of a file of splits")
        path = splits_file(context.splits, name)
        if digest(path) != splits:
            raise ValueError(f"{path}: is not the file of splits that the run began with")
        return read_splits(path, num_graphs=len(dataset))
    groups = isomorphism_groups(dataset) if grouped else None
    return (paper_folds if protocol == "paper" else fair_folds)(labels, seed=seed, groups=groups)


def _labels(dataset: GraphDataset) -> np.ndarray:
    if dataset.y is None or not dataset.classes:
        raise ValueError(f"{dataset.name}: the graphs have no classes")
    return dataset.y.numpy()

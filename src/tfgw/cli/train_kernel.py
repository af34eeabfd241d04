"""``tfgw train`` with a kernel machine: train a kernel machine on the distances between all training graphs."""

import argparse
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from tfgw.cli.file_names import MODEL_FILE, RESULTS_FILE
from tfgw.cli.finished_run import next_steps, write_report
from tfgw.cli.model_choice import KERNEL_OPTIONS, network_options
from tfgw.cli.output import CommandResult, announce, table
from tfgw.cli.run_folder import new_folder, write_json
from tfgw.cli.run_options import run_options, source_of
from tfgw.cli.source import Source
from tfgw.train import SCORE_NAMES, Parts, Preprocessing, Task, TrainConfig, TrainedModel, num_outputs, save_model
from tfgw.train.config import device_of
from tfgw.train.kernel_pipeline import MAX_GRAPHS, KernelTraining, kernel_config, train_kernel
from tfgw.train.tasks import sums


def run(args: argparse.Namespace, loaded: Parts | None, notices: list[str]) -> CommandResult:
    """Train a kernel machine and evaluate it on held-out graphs, which may have been ``loaded`` already.

    ``notices`` are printed when all inputs are known to be valid.
    """
    _check_options(args)
    args.validation = 0.0  # nothing is selected on validation graphs
    chosen = run_options(args)
    source = source_of(chosen)
    # Load before creating the folder, so that a wrong dataset or option leaves nothing behind.
    parts = source.parts() if loaded is None else loaded
    task: Task = args.task or ("classification" if parts.train.classes else "regression")
    if task == "multilabel":
        raise ValueError("--task multilabel: a kernel machine predicts classes or values")
    if len(parts.train) > MAX_GRAPHS:
        raise ValueError(
            f"--model kernel: {len(parts.train)} training graphs have too many pairs; at most {MAX_GRAPHS} are allowed."
            " Train a network, or use TFGWKernelClassifier(max_graphs=...) in Python"
        )
    if args.class_weight is not None and task != "classification":
        raise ValueError(f"--class-weight: only for classification, but the task is {task}")
    device = device_of(args.accelerator or TrainConfig.accelerator)
    with new_folder(args, chosen) as folder:
        announce([*notices, f"training in {folder}", f"node features: {parts.train.encoding}"])
        begin = time.perf_counter()
        trained, training = _train(args, source, parts, task, device)
        save_model(trained, folder / MODEL_FILE)
        data = _results(trained, parts, training) | {"seconds": round(time.perf_counter() - begin, 2)}
        options = {name: value for name, value in chosen.items() if name in KERNEL_OPTIONS}
        write_json(folder / RESULTS_FILE, data | {"features": str(parts.train.encoding), "options": options})
        if args.report:
            write_report(folder, trained, parts, options)
    return CommandResult(data | {"folder": str(folder)}, _text(data, folder))


def _check_options(args: argparse.Namespace) -> None:
    if foreign := network_options(args):
        raise ValueError(f"{foreign[0]}: not an option of a kernel machine (--model kernel)")


def _train(
    args: argparse.Namespace, source: Source, parts: Parts, task: Task, device: str
) -> tuple[TrainedModel, KernelTraining]:
    preprocessing = Preprocessing.fit(parts.train, canonical_order=args.canonical_order, standardize=args.standardize)
    prepared = preprocessing(parts.train)
    starts = {} if args.starts is None else {"n_starts": args.starts}
    config = kernel_config(prepared, num_outputs(prepared, task), **starts)
    training = train_kernel(
        prepared,
        config,
        task=task,
        balanced_classes=args.class_weight == "balanced",
        device=device,
        progress_bar=sys.stderr.isatty(),
    )
    trained = TrainedModel(
        model=training.model,
        task=task,
        classes=parts.train.classes,
        preprocessing=preprocessing,
        source=asdict(replace(source, content=parts.train.content_digest())),
        encoding=parts.train.encoding,
        target_scaler=training.target_scaler,
        columns=source.columns,
    )
    return trained, training


def _results(trained: TrainedModel, parts: Parts, training: KernelTraining) -> dict[str, Any]:
    score = SCORE_NAMES[trained.task]
    predicted = training.left_out
    if trained.target_scaler is not None:
        predicted = trained.target_scaler.restored(predicted)
    left_out = float(sums(trained.task, predicted, cast(Tensor, parts.train.y)).score) / len(parts.train)
    test = None if parts.test is None else trained.evaluate(parts.test).score
    return {
        "dataset": trained.source["dataset"],
        "train_graphs": len(parts.train),
        "test_graphs": len(parts.test or ()),
        f"leave_one_out_{score}": left_out,
        f"test_{score}": test,
        "distances": len(training.model.config.distances),
        "regressions": len(training.fits),
    }


def _text(data: dict[str, Any], folder: Path) -> str:
    rows = [[name.replace("_", " "), value] for name, value in data.items() if value is not None]
    return f"{table(rows)}\n\n{next_steps(folder, has_test=bool(data['test_graphs']))}"

"""``tfgw train``."""

import argparse
import sys
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from torch import Tensor

from tfgw.cli.file_names import HISTORY_FILE, MODEL_FILE, RESULTS_FILE
from tfgw.cli.finished_run import next_steps, write_report
from tfgw.cli.model_choice import choose_model, describe
from tfgw.cli.output import CommandResult, announce, table
from tfgw.cli.run_folder import new_folder, resumed_folder, resumed_options, write_json
from tfgw.cli.run_options import given_run_options, run_options, source_of
from tfgw.cli.settings import complete, model_config, train_config
from tfgw.cli.source import Source
from tfgw.cli.train_kernel import run as run_kernel
from tfgw.datasets import GraphDataset
from tfgw.nn import Ensemble, TFGWConfig, TFGWModel
from tfgw.train import (
    SCORE_NAMES,
    Parts,
    Preprocessing,
    TrainConfig,
    TrainedModel,
    Training,
    build_tfgw,
    outputs,
    save_model,
    train_model,
)
from tfgw.train.checkpoint import training_seconds
from tfgw.train.config import device_of
from tfgw.train.history import describe_records
from tfgw.train.tasks import sums


def run(args: argparse.Namespace) -> CommandResult:
    """Train a model, or continue an interrupted run."""
    device_of(args.accelerator or TrainConfig.accelerator)  # a missing GPU is reported before graphs are read
    loaded: Parts | None = None
    notices: list[str] = []
    if args.resume is None and args.model == "auto":
        chosen = run_options(args)
        choice = choose_model(args, source_of(chosen | {"validation": 0.0}))
        args.model, loaded, notices = choice.model, choice.parts, [describe(choice)]
    if args.model == "kernel":
        return run_kernel(args, loaded, notices)
    return _run_network(args, loaded, notices)


def _run_network(args: argparse.Namespace, loaded: Parts | None, notices: list[str]) -> CommandResult:
    is_new = args.resume is None
    chosen = run_options(args) if is_new else resumed_options(args.resume, given_run_options(args))
    if chosen.get("model") == "kernel":
        raise ValueError(f"--resume {args.resume}: a kernel machine has no checkpoints; train it again")
    source = source_of(chosen)
    # Load before creating the folder, so that an invalid dataset or option leaves nothing behind.
    parts = source.parts() if loaded is None else loaded
    options = complete(chosen, dataset=source.dataset, train=parts.train)
    config, architecture = train_config(options), model_config(options, parts.train)
    if options.get("class_weight") is not None and config.task != "classification":
        raise ValueError(f"--class-weight: only for classification, but the task is {config.task}")
    job = _Job(source, parts, options, config, architecture)
    with new_folder(args, chosen) if is_new else resumed_folder(args.resume, chosen, config) as folder:
        where = f"training in {folder}; to continue after an interruption: tfgw train --resume {folder}"
        announce([*notices, where, f"node features: {parts.train.encoding}"])
        try:
            trained, training = _train(job, folder, resume=not is_new)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"continue with: tfgw train --resume {folder}") from None
        save_model(trained, folder / MODEL_FILE)
        data = _results(trained, parts, training)
        data |= {"seconds": training_seconds(folder), "folder": str(folder)}
        write_json(folder / RESULTS_FILE, data | {"features": str(parts.train.encoding), "options": options})
        write_json(folder / HISTORY_FILE, describe_records(*training.result))
        if args.report:
            write_report(folder, trained, parts, options, training.result.records)
    return CommandResult(data, _text(data, folder))


class _Job(NamedTuple):
    """The validated inputs of a run."""

    source: Source
    parts: Parts
    options: dict[str, Any]
    config: TrainConfig
    architecture: TFGWConfig


def _train(job: _Job, folder: Path, *, resume: bool) -> tuple[TrainedModel, Training]:
    source, parts, options, config, architecture = job
    preprocessing = Preprocessing.fit(
        parts.train,
        canonical_order=options["canonical_order"],
        structure=options["structure"],
        standardize=options["standardize"],
    )
    training = train_model(
        parts,
        partial(build_tfgw, architecture=architecture),
        config,
        preprocessing=preprocessing,
        n_estimators=options["estimators"],
        balanced_classes=options.get("class_weight") == "balanced",
        folder=folder,
        resume=resume,
        progress_bar=sys.stderr.isatty(),
        tensorboard=options["tensorboard"],
    )
    trained = TrainedModel(
        model=cast(TFGWModel | Ensemble, training.model),
        task=config.task,
        classes=parts.train.classes,
        preprocessing=preprocessing,
        source=asdict(replace(source, content=parts.train.content_digest())),
        encoding=parts.train.encoding,
        target_scaler=training.target_scaler,
        columns=source.columns,
    )
    return trained, training


def _results(trained: TrainedModel, parts: Parts, training: Training) -> dict[str, Any]:
    result = training.result
    score = SCORE_NAMES[trained.task]
    measured = {
        f"{name}_{score}": None if part is None else _score(trained, part, cast(GraphDataset, original))
        for (name, part), original in zip(training.parts._asdict().items(), parts, strict=True)
    }
    return {
        "dataset": trained.source["dataset"],
        "train_graphs": len(parts.train),
        "validation_graphs": len(parts.validation or ()),
        "test_graphs": len(parts.test or ()),
        **measured,
        "epochs": len(result.records),
        "kept_epoch": result.kept.epoch if result.kept else len(result.records),
        "alpha": result.records[-1].alpha,
        "live_template_nodes": result.records[-1].live_nodes,
        "parameters": sum(parameter.numel() for parameter in training.model.parameters()),
    }


def _score(trained: TrainedModel, prepared: GraphDataset, original: GraphDataset) -> float:
    """Return the score on preprocessed graphs; their targets may be scaled, so those of the original are used."""
    found = outputs(trained.model, prepared).cpu()
    if trained.target_scaler is not None:
        found = trained.target_scaler.restored(found)
    return float(sums(trained.task, found, cast(Tensor, original.y)).score) / len(prepared)


def _text(data: dict[str, Any], folder: Path) -> str:
    rows = [[name.replace("_", " "), value] for name, value in data.items() if name != "folder" and value is not None]
    return f"{table(rows)}\n\n{next_steps(folder, has_test=bool(data['test_graphs']))}"

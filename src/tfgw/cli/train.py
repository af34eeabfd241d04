"""``tfgw train``."""

import argparse
import json
import sys
import time
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from tfgw.cli.answer import Answer, table
from tfgw.cli.recipes import complete
from tfgw.cli.source import Parts, Source, portable
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.train import (
    SCORE_NAMES,
    FitResult,
    Preprocessing,
    TrainConfig,
    TrainedModel,
    fit,
    save_model,
)

MODEL_FILE, OPTIONS_FILE, RESULTS_FILE = "model.safetensors", "run.json", "results.json"
SOURCE_OPTIONS = ("dataset", "data_dir", "features", "validation", "test", "seed")


def run(args: argparse.Namespace) -> Answer:
    """Train a model, or go on training it."""
    chosen = _options(args) if args.resume is None else _read_options(args.resume)
    source = Source(**{name: chosen[name] for name in SOURCE_OPTIONS})
    parts = source.parts()  # before the folder is made: a wrong dataset leaves nothing behind
    folder = args.resume or _new_folder(args)
    if args.resume is None:
        _write(folder / OPTIONS_FILE, chosen)
    print(f"tfgw: training in {folder}; if it is interrupted: tfgw train --resume {folder}", file=sys.stderr)
    options = complete(chosen, dataset=source.dataset, train=parts.train)
    steps = Preprocessing.fit(
        parts.train,
        canonical_order=options["canonical_order"],
        structure=options["structure"],
        standardize=options["standardize"],
    )
    start = time.perf_counter()
    model = _model(options, parts, steps)
    result = fit(
        model,
        steps(parts.train),
        None if parts.validation is None else steps(parts.validation),
        config=_train_config(options),
        folder=folder,
        resume=args.resume is not None,
        progress_bar=sys.stderr.isatty(),
        tensorboard=options["tensorboard"],
    )
    seconds = time.perf_counter() - start
    trained = TrainedModel(
        model=model,
        task=options["task"],
        classes=parts.train.classes,
        preprocessing=steps,
        source=asdict(source),
    )
    save_model(trained, folder / MODEL_FILE)
    data = _results(trained, parts, result) | {"seconds": seconds, "folder": str(folder)}
    _write(folder / RESULTS_FILE, data | {"options": options})
    return Answer(data, _text(data, folder))


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """The options that make a run, in a form that JSON can hold."""
    left_out = ("command", "json", "debug", "output", "resume")
    options = {name: value for name, value in vars(args).items() if name not in left_out}
    data_dir = None if args.data_dir is None else str(args.data_dir.expanduser().resolve())
    return options | {"dataset": portable(args.dataset), "data_dir": data_dir}


def _new_folder(args: argparse.Namespace) -> Path:
    """An empty folder: the one that was asked for, or the next free number of ``runs/DATASET-NUMBER``."""
    if args.output is not None:
        folder: Path = args.output
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FileExistsError(f"--output {folder}: is there already; choose another, or --resume it")
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    name, number = Path(args.dataset).stem, 1
    while True:
        folder = Path("runs") / f"{name}-{number}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return folder


def _read_options(folder: Path) -> dict[str, Any]:
    path = folder / OPTIONS_FILE
    if not path.is_file():
        raise FileNotFoundError(f"--resume {folder}: not the folder of a run, it has no {OPTIONS_FILE}")
    options: dict[str, Any] = json.loads(path.read_text())
    return options


def _write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n")


def _model(options: dict[str, Any], parts: Parts, steps: Preprocessing) -> TFGWModel:
    train = parts.train
    values = 1 if train.y is None or train.y.dim() == 1 else train.y.shape[1]
    config = TFGWConfig(
        in_channels=steps.in_channels,
        out_channels=train.num_classes if options["task"] == "classification" else values,
        num_templates=options["templates"],
        template_nodes=options["template_nodes"],
        num_layers=options["layers"],
        width=options["width"],
        dropout=options["dropout"],
        structure=options["structure"],
        alpha=None if options["alpha"] == "learned" else options["alpha"],
        learn_templates=not options["fixed_templates"],
        learn_weights=not (options["fixed_templates"] or options["fixed_weights"]),
        n_starts=options["starts"],
        start_kinds=tuple(options["start_kinds"]),
    )
    torch.manual_seed(options["seed"])
    return TFGWModel(config).init_templates(steps(train), seed=options["seed"])


def _train_config(options: dict[str, Any]) -> TrainConfig:
    names = {field.name for field in fields(TrainConfig)} & options.keys()
    return TrainConfig(**{name: options[name] for name in names})


def _results(trained: TrainedModel, parts: Parts, result: FitResult) -> dict[str, Any]:
    score = SCORE_NAMES[trained.task]
    measured = {
        f"{name}_{score}": None if part is None else trained.evaluate(part).score
        for name, part in zip(("train", "validation", "test"), parts, strict=True)
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
        "parameters": sum(parameter.numel() for parameter in trained.model.parameters()),
    }


def _text(data: dict[str, Any], folder: Path) -> str:
    rows = [[name.replace("_", " "), value] for name, value in data.items() if name != "folder"]
    files = [
        [f"{folder / MODEL_FILE}", "the model: tfgw evaluate, predict and embed take it"],
        [f"{folder / RESULTS_FILE}", "these results, and every option"],
    ]
    return f"{table(rows)}\n\n{table(files)}"

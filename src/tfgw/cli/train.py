"""``tfgw train``."""

import argparse
import json
import sys
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from tfgw.cli.output import Answer, table
from tfgw.cli.settings import complete, model_config, train_config, with_recipe
from tfgw.cli.source import Source, parts_by_name, portable
from tfgw.datasets import GraphDataset
from tfgw.datasets.paths import written_whole
from tfgw.nn import Ensemble, TFGWModel
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
from tfgw.train.graph_weights import ClassWeight, weights_of_classes, with_graph_weights
from tfgw.train.history import describe_records
from tfgw.train.target_scaler import TargetScaler
from tfgw.train.tasks import sums

MODEL_FILE, OPTIONS_FILE, RESULTS_FILE = "model.safetensors", "run.json", "results.json"
HISTORY_FILE, REPORT_FILE = "history.json", "report.html"
SOURCE_OPTIONS = ("dataset", "data_dir", "features", "validation", "test", "seed", "smiles", "target", "id")


def run(args: argparse.Namespace) -> Answer:
    """Train a model, or continue an interrupted run."""
    chosen = _options(args) if args.resume is None else _read_options(args.resume)
    known = {name: chosen[name] for name in SOURCE_OPTIONS if name in chosen}
    source = Source(**known, values=chosen["task"] == "regression")
    # Before the folder is made: a wrong dataset or option leaves nothing behind.
    parts = source.parts()
    options = complete(chosen, dataset=source.dataset, train=parts.train)
    config, architecture = train_config(options), model_config(options, parts.train)
    if options["class_weight"] is not None:
        parts = parts._replace(train=_with_class_weights(parts.train, config, options["class_weight"]))
    folder = args.resume or _new_folder(args)
    if args.resume is None:
        _write(folder / OPTIONS_FILE, chosen)
    print(f"tfgw: training in {folder}; if it is interrupted: tfgw train --resume {folder}", file=sys.stderr)
    print(f"tfgw: features of nodes: {parts.train.encoding}", file=sys.stderr)
    preprocessing = Preprocessing.fit(
        parts.train,
        canonical_order=options["canonical_order"],
        structure=options["structure"],
        standardize=options["standardize"],
    )
    scaler = TargetScaler.of_dataset(parts.train) if config.task == "regression" else None
    start = time.perf_counter()
    training = train_model(
        parts if scaler is None else parts.map(scaler.scaled),
        partial(build_tfgw, architecture=architecture),
        config,
        preprocessing=preprocessing,
        n_estimators=options["estimators"],
        folder=folder,
        resume=args.resume is not None,
        progress_bar=sys.stderr.isatty(),
        tensorboard=options["tensorboard"],
    )
    seconds = time.perf_counter() - start
    trained = TrainedModel(
        model=cast(TFGWModel | Ensemble, training.model),
        task=config.task,
        classes=parts.train.classes,
        preprocessing=preprocessing,
        source=asdict(replace(source, content=parts.train.content_digest())),
        encoding=parts.train.encoding,
        target_scaler=scaler,
        columns=source.columns,
    )
    save_model(trained, folder / MODEL_FILE)
    data = _results(trained, parts, training) | {"seconds": seconds, "folder": str(folder)}
    _write(folder / RESULTS_FILE, data | {"features": str(parts.train.encoding), "options": options})
    _write(folder / HISTORY_FILE, describe_records(*training.result))
    if args.report:
        _write_report(folder, trained, parts, options, training)
    return Answer(data, _text(data, folder))


def _with_class_weights(train: GraphDataset, config: TrainConfig, class_weight: ClassWeight) -> GraphDataset:
    if config.task != "classification" or train.y is None:
        raise ValueError(f"--class-weight: needs classes, but the task is {config.task}")
    return with_graph_weights(train, weights_of_classes(class_weight, train.y.numpy(), train.classes))


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """The options that make a run, in a form that JSON can hold."""
    left_out = ("command", "json", "debug", "output", "resume", "report")
    options = {name: value for name, value in vars(args).items() if name not in left_out}
    data_dir = None if args.data_dir is None else str(args.data_dir.expanduser().resolve())
    return with_recipe(options, dataset=args.dataset) | {"dataset": portable(args.dataset), "data_dir": data_dir}


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
    with written_whole(path) as temporary:
        temporary.write_text(json.dumps(data, indent=1) + "\n")


def _results(trained: TrainedModel, parts: Parts, training: Training) -> dict[str, Any]:
    model, prepared, result = training
    score = SCORE_NAMES[trained.task]
    measured = {
        f"{name}_{score}": None if part is None else _score(trained, part, cast(GraphDataset, original))
        for (name, part), original in zip(prepared._asdict().items(), parts, strict=True)
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
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def _score(trained: TrainedModel, prepared: GraphDataset, original: GraphDataset) -> float:
    """The score on graphs that are prepared already; targets of these may be scaled, those of the original are not."""
    found = outputs(trained.model, prepared).cpu()
    if trained.target_scaler is not None:
        found = trained.target_scaler.restored(found)
    return float(sums(trained.task, found, cast(Tensor, original.y)).score) / len(prepared)


def _write_report(
    folder: Path, trained: TrainedModel, parts: Parts, options: dict[str, Any], training: Training
) -> None:
    """Write the report, or say in one line why there is none: the model is there, and worth more."""
    try:
        from tfgw.report import model_report

        page = model_report(
            trained,
            parts_by_name(parts),
            name=Path(trained.source["dataset"]).stem,
            options=options,
            history=training.result.records,
        )
        page.write(folder / REPORT_FILE)
    except ImportError as error:
        print(f"tfgw: no report: {error}", file=sys.stderr)
    except Exception as error:
        print(f"tfgw: no report: {type(error).__name__}: {error} (tfgw report {folder} --debug)", file=sys.stderr)


def _text(data: dict[str, Any], folder: Path) -> str:
    rows = [[name.replace("_", " "), value] for name, value in data.items() if name != "folder"]
    files = [
        [f"{folder / MODEL_FILE}", "the model: tfgw evaluate, predict and embed take it"],
        [f"{folder / RESULTS_FILE}", "these results, and every option"],
    ]
    if (folder / REPORT_FILE).is_file():
        files.append([f"{folder / REPORT_FILE}", "all of it to look at, in a browser"])
    return f"{table(rows)}\n\n{table(files)}"

"""The options of all commands. A command's implementation is imported only when it runs, so that help is fast."""

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tfgw import __version__
from tfgw.cli.number_arguments import alpha, count, positive, seconds, share, size_class
from tfgw.cli.option_defaults import default_of, module_constant, recipes, stream_default
from tfgw.cli.paper_arguments import add_paper_commands

DATASET_HELP = (
    "SKIP-CIRCLES or 4-CYCLES (generated), a name from the TU collection such as MUTAG, or the path of your own data:"
    " a folder or zip in TU format, a folder of GraphML files, a JSON Lines file, a CSV or Parquet file of molecules"
)

WRITES_REPORT = True
"""Whether ``tfgw train`` writes a report (default of ``--report``)."""

NUMBER: dict[str, Any] = {"type": count(1), "metavar": "N"}
RATE: dict[str, Any] = {"type": positive, "metavar": "RATE"}


def build_parser(train_defaults: Mapping[str, Any] | None = None) -> argparse.ArgumentParser:
    """Build the parser of the whole command line; ``train_defaults`` override the defaults of ``tfgw train``."""
    parser = argparse.ArgumentParser(
        prog="tfgw",
        description="Classify graphs by their optimal transport distances to learned templates or to training graphs.",
        epilog="Start with 'tfgw train': it needs no data and takes less than a minute.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    train = _command(commands, "train", "train a model and evaluate it on held-out graphs")
    _train(train)
    train.set_defaults(**train_defaults or {})
    evaluate = _command(commands, "evaluate", "evaluate a trained model on labelled graphs")
    _use(evaluate)
    text = "use all graphs of the run's dataset, including its training graphs"
    evaluate.add_argument("--all", action="store_true", help=text)
    predict = _command(commands, "predict", "predict the classes or values of graphs")
    _use(predict)
    _streaming(predict)
    embed = _command(commands, "embed", "compute the distances of graphs to the templates of a model")
    _use(embed)
    _streaming(embed)
    _check(_command(commands, "check", "check how reliable the distances of a trained model are"))
    _report(_command(commands, "report", "write an HTML report: accuracy, templates, explanations"))
    _gpu(_command(commands, "gpu", "check that a GPU can be used, compile its kernels and test them"))
    _datasets(_command(commands, "datasets", "list datasets and their statistics"))
    paper = commands.add_parser("paper", help="run the paper's experiments", description="Run the paper's experiments.")
    add_paper_commands(paper)
    return parser


def given_options(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the options of ``tfgw train`` that a command line sets explicitly."""
    absent = object()
    names = vars(build_parser().parse_args(["train"])).keys() - {"command"}
    found = vars(build_parser(dict.fromkeys(names, absent)).parse_args(arguments))
    return {name: value for name, value in found.items() if value is not absent}


def _command(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    parser.set_defaults(command=lambda args: import_module(f"tfgw.cli.{name}").run(args))
    parser.add_argument("--json", action="store_true", help="print the result as JSON only")
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    return parser


def _train(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    data.add_argument(
        "--dataset", default="SKIP-CIRCLES", metavar="NAME|PATH", help=_with_default(DATASET_HELP, "%(default)s")
    )
    _loading(data)
    shares = module_constant("cli/settings.py", "VALIDATION")
    default = f"{shares['default']:g}; {shares['paper']:g} with --recipe paper"
    text = _with_default("share of the graphs held out to select the best epoch", default)
    data.add_argument("--validation", type=share, metavar="SHARE", help=text)
    default = default_of("test")
    text = _with_default("share of the graphs held out to test the model", default)
    data.add_argument("--test", type=share, default=default, metavar="SHARE", help=text)
    data.add_argument(
        "--standardize",
        action=argparse.BooleanOptionalAction,
        help=_with_default("scale features to mean 0 and standard deviation 1", "only real-valued features"),
    )
    data.add_argument(
        "--canonical-order",
        action=argparse.BooleanOptionalAction,
        default=default_of("canonical_order"),
        help=_with_default("put nodes into a canonical order, so that isomorphic graphs get the same embedding", "yes"),
    )

    title = "model (generated datasets have their own defaults; results.json records all options)"
    _model(parser.add_argument_group(title))
    _training(parser.add_argument_group("training"))
    run = parser.add_argument_group("output")
    run.add_argument(
        "--output", type=Path, metavar="FOLDER", help=_with_default("new folder for the run", "runs/DATASET-NUMBER")
    )
    run.add_argument(
        "--resume",
        type=Path,
        metavar="FOLDER",
        help="continue an interrupted run with its original options; runs with --recipe paper accept a larger --epochs",
    )
    _setting(run, "checkpoint-seconds", "save a checkpoint every S seconds", type=seconds, metavar="S")
    text = _with_default("write report.html to the folder of the run", "yes, if the extra 'report' is installed")
    run.add_argument("--report", action=argparse.BooleanOptionalAction, default=WRITES_REPORT, help=text)
    run.add_argument("--tensorboard", action="store_true", help="write TensorBoard logs to the folder of the run")


def _with_default(text: str, default: Any) -> str:
    return f"{text} (default: {default})"


def _setting(group: Any, option: str, text: str, *, default: str | None = None, **arguments: Any) -> None:
    """Add an option that is ``None`` if omitted, so that the recipe of a dataset can set it.

    ``default`` describes a default that is not a single value.
    """
    shown = default_of(option.replace("-", "_")) if default is None else default
    group.add_argument(f"--{option}", help=_with_default(text, shown), **arguments)


def _loading(group: Any) -> None:
    _data_folder(group)
    _table_columns(group)
    group.add_argument(
        "--features",
        choices=["auto", "labels", "attributes", "both", "degree", "degree_scalar", "constant"],
        default=default_of("features"),
        help=_with_default("node features", "auto: attributes and labels if the graphs have them, else degrees"),
    )


def _table_columns(group: Any) -> None:
    group.add_argument("--smiles", metavar="COLUMN", help="column of SMILES strings in a CSV or Parquet file")
    group.add_argument("--target", metavar="COLUMN", help="column of the labels or values to predict")
    text = _with_default("column of identifiers, which are copied to the output", "the row number, from 0")
    group.add_argument("--id", metavar="COLUMN", help=text)


def _data_folder(group: Any) -> None:
    group.add_argument(
        "--data-dir",
        type=Path,
        metavar="FOLDER",
        help=_with_default(
            "folder of the datasets that are given by name",
            "environment variable TFGW_DATA, else the user's cache folder",
        ),
    )


def _model(group: Any) -> None:
    seconds = module_constant("train/kernel_time.py", "AUTO_SECONDS")
    text = (
        "network: templates are learned; kernel: distances to all training graphs, without epochs, more accurate on"
        f" small datasets; auto: kernel if this takes at most {seconds // 60} minutes of CPU time, unless an option of"
        " networks is given"
    )
    group.add_argument(
        "--model", choices=["auto", "network", "kernel"], default="auto", help=_with_default(text, "%(default)s")
    )
    tasks = ["classification", "regression", "multilabel"]
    _setting(group, "task", "kind of prediction", default="classification if the targets are classes", choices=tasks)

    _setting(
        group, "structure", "structure matrix to compare with the templates", choices=["adjacency", "shortest_path"]
    )
    _setting(group, "layers", "number of GIN layers", type=count(0), metavar="N")
    _setting(group, "width", "hidden features per GIN layer", **NUMBER)
    _setting(
        group, "templates", "number of templates", default=f"{default_of('templates_per_class')} per class", **NUMBER
    )
    most = module_constant("train/template_size.py", "MAX_DEFAULT_NODES")
    default = f"median of the training graphs, at most {most}"
    _setting(group, "template-nodes", "nodes per template", default=default, **NUMBER)
    group.add_argument("--fixed-templates", action="store_true", help="do not train the templates")
    group.add_argument("--fixed-weights", action="store_true", help="do not train the node weights of the templates")
    alphas = "trade-off between features (0) and structure (1), a number or 'learned'"
    _setting(group, "alpha", alphas, default="learned", type=alpha, metavar="A")
    _setting(group, "dropout", "dropout rate of the MLP head", type=share, metavar="SHARE")
    _setting(group, "starts", "solver starts per pair of graph and template; the best result is kept", **NUMBER)
    kinds = ["uniform", "anchored", "perturbed"]
    text = f"kinds of solver starts: {', '.join(kinds)}"
    _setting(group, "start-kinds", text, default="all", nargs="+", choices=kinds, metavar="KIND")


def _training(group: Any) -> None:
    text = "training recipe: 'default' is tuned for accuracy on new graphs, 'paper' follows the publication"
    _setting(group, "recipe", text, default="default; paper for generated datasets", choices=list(recipes()))
    text = "number of networks in the ensemble"
    _setting(group, "estimators", text, default=f"{default_of('estimators')}, fewer for large datasets", **NUMBER)
    epochs = f"{default_of('epochs')}, more for fewer than 130 graphs, fewer for more than 2,300"
    _setting(group, "epochs", "passes over the training graphs", default=epochs, **NUMBER)
    _setting(group, "batch-size", "graphs per optimiser step", **NUMBER)
    _setting(group, "lr", "learning rate of Adam", **RATE)
    _setting(group, "template-lr", "learning rate of the templates", default="same as --lr", **RATE)
    _setting(group, "weight-decay", "weight decay of the encoder and the head", type=share, metavar="DECAY")
    _setting(group, "label-smoothing", "label smoothing of the cross-entropy loss", type=share, metavar="SHARE")
    text = "weight classes in the loss; 'balanced' gives all classes the same total weight"
    _setting(group, "class-weight", text, default="all graphs have the same weight", choices=["balanced"])

    text = "stop after N epochs without improvement on the validation graphs"
    _setting(group, "patience", text, default="never", **NUMBER)
    text = "draw batches with the class proportions of the training graphs"
    _setting(group, "stratified", text, default="no", action=argparse.BooleanOptionalAction)
    _setting(group, "precision", "precision of the encoder and the head", choices=["float64", "float32", "bf16"])
    _setting(group, "accelerator", "device to train on", choices=["auto", "cpu", "cuda"])
    _setting(group, "devices", "number of processes for data-parallel training", **NUMBER)
    seed = default_of("seed")
    text = _with_default("random seed for generated data, split, initial weights and batch order", seed)
    group.add_argument("--seed", type=count(0), default=seed, metavar="N", help=text)


def _use(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder of a run, or its model.safetensors")
    parser.add_argument(
        "--dataset",
        metavar="NAME|PATH",
        help=_with_default(DATASET_HELP, "the test graphs of the model's run"),
    )
    _data_folder(parser)
    _table_columns(parser)


def _check(parser: argparse.ArgumentParser) -> None:
    _use(parser)
    parser.add_argument("--graphs", **NUMBER, help=_with_default("check the first N graphs only", "all"))
    parser.add_argument(
        "--starts", **NUMBER, default=16, help=_with_default("solver starts to compare with", "%(default)s")
    )
    text = _with_default("random node orders per graph", "%(default)s")
    parser.add_argument("--renumberings", **NUMBER, default=1, help=text)
    text = _with_default("random seed for the node orders", "%(default)s")
    parser.add_argument("--seed", type=count(0), default=0, metavar="N", help=text)


def _report(parser: argparse.ArgumentParser) -> None:
    _use(parser)
    text = "explain this graph, given by its position or identifier; may be repeated"
    default = "the most certain, the least certain, and wrong predictions"
    parser.add_argument("--graph", action="append", default=[], metavar="ID", help=_with_default(text, default))
    text = _with_default("projection for the map of the graphs", "%(default)s")
    parser.add_argument("--map", choices=["pca", "tsne"], default="pca", help=text)
    text = _with_default("file to write", "report.html in the folder of the model")
    parser.add_argument("--output", type=Path, metavar="FILE", help=text)


def _streaming(parser: argparse.ArgumentParser) -> None:
    formats = "NAME.csv, NAME.jsonl (JSON Lines) or NAME.parquet"
    text = f"write the results to a new file: {formats}; run the same command again to resume an interrupted one"
    parser.add_argument("--output", type=Path, metavar="FILE", help=text)
    size = stream_default("batch_size")
    text = _with_default("graphs per batch", size)
    parser.add_argument("--batch-size", **NUMBER, default=size, help=text)
    text = _with_default("threads or processes that read and prepare graphs", "one per core")
    parser.add_argument("--workers", type=count(0), metavar="N", help=text)
    default = default_of("accelerator")
    text = _with_default("device to solve on", default)
    parser.add_argument("--accelerator", choices=["auto", "cpu", "cuda"], default=default, help=text)
    text = _with_default("run on this machine or on a Ray cluster (needs the extra 'ray')", "%(default)s")
    parser.add_argument("--engine", choices=["local", "ray"], default="local", help=text)
    text = _with_default("address of the Ray cluster", "start a local one")
    parser.add_argument("--address", metavar="HOST:PORT", help=text)


def _gpu(parser: argparse.ArgumentParser) -> None:
    text = _with_default("size classes to prepare, as maximum numbers of template nodes; fewer take less time", "all")
    parser.add_argument("--classes", type=size_class, nargs="+", metavar="NODES", help=text)


def _datasets(parser: argparse.ArgumentParser) -> None:
    text = _with_default("datasets to describe", "all in the data folder")
    parser.add_argument("names", nargs="*", metavar="NAME|PATH", help=text)
    _loading(parser)

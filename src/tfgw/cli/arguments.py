"""The options of every command. What a command does is imported only when it runs: help must come at once."""

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tfgw import __version__
from tfgw.cli.number_arguments import alpha, count, positive, seconds, share
from tfgw.cli.option_defaults import default_of, recipes, stream_default
from tfgw.cli.paper_arguments import add_paper_commands

DATASET_HELP = (
    "SKIP-CIRCLES or 4-CYCLES (generated), a name from the TU collection such as MUTAG, or a path of your own: a "
    "folder or zip in TU format, a folder of GraphML files, a file of JSON lines, a CSV or Parquet file of molecules"
)

WRITES_REPORT = True
"""Whether ``tfgw train`` ends with a report."""

NUMBER: dict[str, Any] = {"type": count(1), "metavar": "N"}
RATE: dict[str, Any] = {"type": positive, "metavar": "RATE"}


def build_parser(train_defaults: Mapping[str, Any] | None = None) -> argparse.ArgumentParser:
    """The parser of the whole command line; ``train_defaults`` replace those of ``tfgw train``."""
    parser = argparse.ArgumentParser(
        prog="tfgw",
        description="Classify graphs by their optimal transport distances to a few learned template graphs.",
        epilog="Start with 'tfgw train': it needs no data and takes less than a minute.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    train = _command(commands, "train", "train a model, and measure it on graphs it has not seen")
    _train(train)
    train.set_defaults(**train_defaults or {})
    evaluate = _command(commands, "evaluate", "measure a trained model on labelled graphs that it was not trained on")
    _use(evaluate)
    text = "take all graphs of the run's own dataset, also those that the model was trained on"
    evaluate.add_argument("--all", action="store_true", help=text)
    predict = _command(commands, "predict", "predict the class (or values) of graphs with a trained model")
    _use(predict)
    _streaming(predict)
    embed = _command(commands, "embed", "turn graphs into vectors: their distances to the templates of a model")
    _use(embed)
    _streaming(embed)
    _check(_command(commands, "check", "say how far the distances of a trained model can be trusted"))
    _report(_command(commands, "report", "write one HTML page about a trained model: quality, templates, explanations"))
    _gpu(_command(commands, "gpu", "say whether a GPU can be used, compile for it, and compare it with the CPU"))
    _datasets(_command(commands, "datasets", "list datasets with their statistics"))
    paper = commands.add_parser("paper", help="run the paper's experiments", description="Run the paper's experiments.")
    add_paper_commands(paper)
    return parser


def given_options(arguments: Sequence[str]) -> dict[str, Any]:
    """The options of ``tfgw train`` that a command line names, without those that have their default."""
    absent = object()
    names = vars(build_parser().parse_args(["train"])).keys() - {"command"}
    found = vars(build_parser(dict.fromkeys(names, absent)).parse_args(arguments))
    return {name: value for name, value in found.items() if value is not absent}


def _command(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    parser.set_defaults(command=lambda args: import_module(f"tfgw.cli.{name}").run(args))
    parser.add_argument("--json", action="store_true", help="print the answer as JSON, and nothing else")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _train(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    data.add_argument(
        "--dataset", default="SKIP-CIRCLES", metavar="NAME|PATH", help=_with_default(DATASET_HELP, "%(default)s")
    )
    _loading(data)
    text = _with_default("share of the graphs held out to select the best epoch", "0, with --recipe paper 0.1")
    data.add_argument("--validation", type=share, metavar="SHARE", help=text)
    default = default_of("test")
    text = _with_default("share of the graphs held out to measure the model", default)
    data.add_argument("--test", type=share, default=default, metavar="SHARE", help=text)
    data.add_argument(
        "--standardize",
        action=argparse.BooleanOptionalAction,
        help=_with_default("bring features to mean 0 and standard deviation 1", "if they are real-valued"),
    )
    data.add_argument(
        "--canonical-order",
        action=argparse.BooleanOptionalAction,
        default=True,
        help=_with_default("order nodes such that isomorphic graphs get the same embedding", "yes"),
    )
    _model(parser.add_argument_group("model (defaults are those for real data; results.json lists what was used)"))
    _training(parser.add_argument_group("training (likewise)"))
    run = parser.add_argument_group("files")
    run.add_argument("--output", type=Path, metavar="FOLDER", help=_with_default("a new folder", "runs/DATASET-NUMBER"))
    run.add_argument(
        "--resume",
        type=Path,
        metavar="FOLDER",
        help="continue an interrupted run with its original options; --epochs extends one of --recipe paper",
    )
    _setting(run, "checkpoint-seconds", "save a checkpoint every S seconds", type=seconds, metavar="S")
    text = _with_default("write report.html into the folder", "yes, if the extra 'report' is installed")
    run.add_argument("--report", action=argparse.BooleanOptionalAction, default=WRITES_REPORT, help=text)
    run.add_argument("--tensorboard", action="store_true", help="write TensorBoard logs into the folder")


def _with_default(text: str, default: Any) -> str:
    return f"{text} (default: {default})"


def _setting(group: Any, option: str, text: str, *, default: str | None = None, **arguments: Any) -> None:
    """An option that is ``None`` where it is left out, so that a dataset's recipe can fill it in.

    ``default`` describes one that is not a plain value of the settings.
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
        help=_with_default("what describes a node", "auto: attributes and labels, those that there are, or the degree"),
    )


def _table_columns(group: Any) -> None:
    group.add_argument("--smiles", metavar="COLUMN", help="of a CSV or Parquet file: the column of molecules")
    group.add_argument("--target", metavar="COLUMN", help="the column of what is predicted")
    text = _with_default("the column of identifiers, which answers repeat", "the number of the row, from 0")
    group.add_argument("--id", metavar="COLUMN", help=text)


def _data_folder(group: Any) -> None:
    group.add_argument(
        "--data-dir",
        type=Path,
        metavar="FOLDER",
        help=_with_default("folder in which datasets are looked up by name", "the variable TFGW_DATA"),
    )


def _model(group: Any) -> None:
    tasks = ["classification", "regression", "multilabel"]
    _setting(group, "task", "what is predicted", default="classification if graphs have classes", choices=tasks)
    _setting(group, "structure", "what templates are compared by", choices=["adjacency", "shortest_path"])
    _setting(group, "layers", "number of GIN layers", type=count(0), metavar="N")
    _setting(group, "width", "features that each layer computes", **NUMBER)
    _setting(
        group, "templates", "number of templates", default=f"{default_of('templates_per_class')} per class", **NUMBER
    )
    _setting(
        group, "template-nodes", "nodes per template", default="the median of the training graphs, at most 64", **NUMBER
    )
    group.add_argument("--fixed-templates", action="store_true", help="keep templates as drawn from the data")
    group.add_argument("--fixed-weights", action="store_true", help="keep the weights of template nodes uniform")
    alphas = "trade-off between features (0) and structure (1), or 'learned'"
    _setting(group, "alpha", alphas, default="learned", type=alpha, metavar="A")
    _setting(group, "dropout", "share of the head's hidden units dropped in training", type=share, metavar="SHARE")
    _setting(group, "starts", "starts of the solver per pair of graph and template", **NUMBER)
    kinds = ["uniform", "anchored", "perturbed"]
    text = f"kinds of starts: {', '.join(kinds)}"
    _setting(group, "start-kinds", text, default="all", nargs="+", choices=kinds, metavar="KIND")


def _training(group: Any) -> None:
    text = "default for accuracy on new graphs, paper as in the publication"
    _setting(group, "recipe", text, default="default, for generated graphs paper", choices=list(recipes()))
    text = "networks to train side by side and average"
    _setting(group, "estimators", text, default=f"{default_of('estimators')}, fewer for large datasets", **NUMBER)
    epochs = f"{default_of('epochs')}, more for below 130 graphs, fewer for above 2,300"
    _setting(group, "epochs", "passes over the training graphs", default=epochs, **NUMBER)
    _setting(group, "batch-size", "graphs per optimiser step", **NUMBER)
    _setting(group, "lr", "learning rate of Adam", **RATE)
    _setting(group, "template-lr", "learning rate of the templates", default="the same", **RATE)
    _setting(group, "weight-decay", "weight decay of the networks", type=share, metavar="DECAY")
    _setting(group, "label-smoothing", "share of a target spread over all classes", type=share, metavar="SHARE")
    text = "balanced: all classes count equally in the loss, whatever their numbers of graphs"
    _setting(group, "class-weight", text, default="all graphs count equally", choices=["balanced"])
    _setting(group, "patience", "stop after N epochs without a better model", default="never", **NUMBER)
    text = "give every batch the class proportions of the training graphs"
    _setting(group, "stratified", text, default="no", action=argparse.BooleanOptionalAction)
    _setting(group, "precision", "precision of the networks", choices=["float64", "float32", "bf16"])
    _setting(group, "accelerator", "device to train on", choices=["auto", "cpu", "cuda"])
    _setting(group, "devices", "number of processes that share each batch", **NUMBER)
    seed = default_of("seed")
    text = _with_default("random seed of data, split, weights and order", seed)
    group.add_argument("--seed", type=count(0), default=seed, metavar="N", help=text)


def _use(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder of a run, or its model.safetensors")
    parser.add_argument(
        "--dataset",
        metavar="NAME|PATH",
        help=_with_default(DATASET_HELP, "the test graphs of the model's own run"),
    )
    _data_folder(parser)
    _table_columns(parser)


def _check(parser: argparse.ArgumentParser) -> None:
    _use(parser)
    parser.add_argument("--graphs", **NUMBER, help=_with_default("check the first N graphs only", "all"))
    parser.add_argument("--starts", **NUMBER, default=16, help=_with_default("starts to compare with", "%(default)s"))
    text = _with_default("random node orders of each graph", "%(default)s")
    parser.add_argument("--renumberings", **NUMBER, default=1, help=text)
    text = _with_default("random seed of the node orders", "%(default)s")
    parser.add_argument("--seed", type=count(0), default=0, metavar="N", help=text)


def _report(parser: argparse.ArgumentParser) -> None:
    _use(parser)
    text = "explain this graph, by its position or identifier; may be repeated"
    default = "the most certain, the most uncertain, and wrong ones"
    parser.add_argument("--graph", action="append", default=[], metavar="ID", help=_with_default(text, default))
    text = _with_default("how the map of the graphs is made", "%(default)s")
    parser.add_argument("--map", choices=["pca", "tsne"], default="pca", help=text)
    text = _with_default("file to write", "report.html in the folder of the model")
    parser.add_argument("--output", type=Path, metavar="FILE", help=text)


def _streaming(parser: argparse.ArgumentParser) -> None:
    formats = "NAME.csv, NAME.jsonl (JSON lines) or NAME.parquet"
    text = f"write a new file: {formats}; after an interruption the same command continues"
    parser.add_argument("--output", type=Path, metavar="FILE", help=text)
    size = stream_default("batch_size")
    text = _with_default("graphs that are read and solved at a time", size)
    parser.add_argument("--batch-size", **NUMBER, default=size, help=text)
    text = _with_default("threads or processes that read and prepare graphs", "one per core")
    parser.add_argument("--workers", type=count(0), metavar="N", help=text)
    default = default_of("accelerator")
    text = _with_default("device to solve on", default)
    parser.add_argument("--accelerator", choices=["auto", "cpu", "cuda"], default=default, help=text)
    text = _with_default("where the work is done: here, or on a Ray cluster (extra 'ray')", "%(default)s")
    parser.add_argument("--engine", choices=["local", "ray"], default="local", help=text)
    text = _with_default("address of the Ray cluster", "one that is started here")
    parser.add_argument("--address", metavar="HOST:PORT", help=text)


def _gpu(parser: argparse.ArgumentParser) -> None:
    text = "most template nodes to make ready; fewer classes take less time"
    classes = (16, 32, 64, 128)
    help_text = _with_default(text, "all: 16 32 64 128")
    parser.add_argument("--classes", type=int, nargs="+", choices=classes, default=classes, help=help_text)


def _datasets(parser: argparse.ArgumentParser) -> None:
    text = _with_default("datasets to describe", "all that are in the folder")
    parser.add_argument("names", nargs="*", metavar="NAME|PATH", help=text)
    _loading(parser)

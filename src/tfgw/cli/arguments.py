"""The options of every command. What a command does is imported only when it runs: help must come at once."""

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from tfgw.cli.number_arguments import alpha, count, positive, seconds, share
from tfgw.cli.paper_arguments import add_paper_commands

DATASET_HELP = (
    "SKIP-CIRCLES or 4-CYCLES (generated), a name from the TU collection such as MUTAG, or the path of a "
    "folder or zip of your own in TU format, such as ./mine"
)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="tfgw",
        description="Classify graphs by their optimal transport distances to a few learned template graphs.",
        epilog="Start with 'tfgw train': it needs no data and takes less than a minute.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _train(_command(commands, "train", "train a model, and measure it on graphs it has not seen"))
    _use(_command(commands, "evaluate", "measure a trained model on labelled graphs"))
    predict = _command(commands, "predict", "predict the class (or values) of graphs with a trained model")
    _use(predict)
    _output_file(predict)
    embed = _command(commands, "embed", "turn graphs into vectors: their distances to the templates of a model")
    _use(embed)
    _output_file(embed)
    _check(_command(commands, "check", "say how far the distances of a trained model can be trusted"))
    _datasets(_command(commands, "datasets", "list datasets with their statistics"))
    paper = commands.add_parser("paper", help="run the paper's experiments", description="Run the paper's experiments.")
    add_paper_commands(paper)
    return parser


def _command(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    parser.set_defaults(command=lambda args: import_module(f"tfgw.cli.{name}").run(args))
    parser.add_argument("--json", action="store_true", help="print the answer as JSON, and nothing else")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _train(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    data.add_argument("--dataset", default="SKIP-CIRCLES", metavar="NAME|PATH", help=DATASET_HELP)
    _loading(data)
    data.add_argument("--validation", type=share, default=0.1, metavar="SHARE", help="graphs to choose by (0.1)")
    data.add_argument("--test", type=share, default=0.1, metavar="SHARE", help="graphs to measure on (0.1)")
    data.add_argument(
        "--standardize",
        action=argparse.BooleanOptionalAction,
        help="bring features to mean 0 and deviation 1 (default: if they are real-valued)",
    )
    data.add_argument(
        "--canonical-order",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="order nodes such that isomorphic graphs get the same embedding (yes)",
    )
    _model(
        parser.add_argument_group("model (in brackets: the default for real data; results.json lists what was used)")
    )
    _training(parser.add_argument_group("training (likewise)"))
    run = parser.add_argument_group("files")
    run.add_argument("--output", type=Path, metavar="FOLDER", help="a new folder (default: runs/DATASET-NUMBER)")
    run.add_argument("--resume", type=Path, metavar="FOLDER", help="go on with an interrupted run, all else as it was")
    run.add_argument("--checkpoint-seconds", type=seconds, metavar="S", help="most work that a crash costs (10)")
    run.add_argument("--tensorboard", action="store_true", help="write TensorBoard logs into the folder")


def _loading(group: Any) -> None:
    group.add_argument("--data-dir", type=Path, metavar="FOLDER", help="where names are looked up (TFGW_DATA)")
    group.add_argument(
        "--features",
        choices=["auto", "labels", "attributes", "degree", "degree_scalar", "constant"],
        default="auto",
        help="what describes a node (default: the first of attributes, labels, degree that there is)",
    )


def _model(group: Any) -> None:
    group.add_argument("--task", choices=["classification", "regression", "multilabel"], help="what is predicted")
    group.add_argument(
        "--structure", choices=["adjacency", "shortest_path"], help="what templates are compared on (adjacency)"
    )
    group.add_argument("--layers", type=count(0), metavar="N", help="message passing layers, of type GIN (2)")
    group.add_argument("--width", type=count(1), metavar="N", help="features that each layer computes (16)")
    group.add_argument("--templates", type=count(1), metavar="N", help="number of templates (4 per class)")
    group.add_argument("--template-nodes", type=count(1), metavar="N", help="nodes of each (those of the median graph)")
    group.add_argument("--fixed-templates", action="store_true", help="keep templates as drawn from the data")
    group.add_argument("--fixed-weights", action="store_true", help="keep template nodes equally heavy")
    group.add_argument("--alpha", type=alpha, metavar="A", help="0: features, 1: structure, or 'learned' (learned)")
    group.add_argument("--dropout", type=share, metavar="SHARE", help="dropped units of the classifier (0)")
    group.add_argument("--starts", type=count(1), metavar="N", help="starts of the solver per pair of graphs (1)")
    group.add_argument(
        "--start-kinds",
        nargs="+",
        choices=["uniform", "anchored", "perturbed"],
        metavar="KIND",
        help="of the starts: uniform, anchored, perturbed (all of them)",
    )


def _training(group: Any) -> None:
    group.add_argument("--epochs", type=count(1), metavar="N", help="passes over the training graphs (500)")
    group.add_argument("--batch-size", type=count(1), metavar="N", help="graphs per step (128)")
    group.add_argument("--lr", type=positive, metavar="RATE", help="learning rate of Adam (0.01)")
    group.add_argument("--template-lr", type=positive, metavar="RATE", help="learning rate of the templates (the same)")
    group.add_argument(
        "--patience", type=count(1), metavar="N", help="stop after N epochs without a better model (never)"
    )
    group.add_argument(
        "--stratified",
        action=argparse.BooleanOptionalAction,
        help="give every batch the class proportions of the whole (no)",
    )
    group.add_argument("--precision", choices=["float64", "float32", "bf16"], help="of the networks (float64)")
    group.add_argument("--accelerator", choices=["auto", "cpu", "cuda"], help="where to train (auto)")
    group.add_argument("--devices", type=count(1), metavar="N", help="processes that share each batch (1)")
    group.add_argument("--seed", type=count(0), default=0, metavar="N", help="of data, split, weights, order (0)")


def _use(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder of a run, or its model.safetensors")
    parser.add_argument(
        "--dataset",
        metavar="NAME|PATH",
        help=f"{DATASET_HELP} (default: the test graphs of the model's own run)",
    )
    parser.add_argument("--data-dir", type=Path, metavar="FOLDER", help="where names are looked up (TFGW_DATA)")


def _check(parser: argparse.ArgumentParser) -> None:
    _use(parser)
    parser.add_argument("--graphs", type=count(1), metavar="N", help="the first N graphs only (all)")
    parser.add_argument("--starts", type=count(1), default=16, metavar="N", help="starts to compare with (16)")
    parser.add_argument(
        "--renumberings", type=count(1), default=1, metavar="N", help="random node orders of each graph (1)"
    )
    parser.add_argument("--seed", type=count(0), default=0, metavar="N", help="of the node orders (0)")


def _output_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, metavar="FILE", help="write a CSV file, which must not exist yet")


def _datasets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME|PATH", help="default: all that need no download")
    _loading(parser)

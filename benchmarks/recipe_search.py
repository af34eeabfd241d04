"""Search for a training recipe on development splits: test folds that are not those of the protocol ``fair``.

python benchmarks/recipe_search.py run configurations.toml --results FILE --data-dir FOLDER
python benchmarks/recipe_search.py show --results FILE --against NAME

A file of configurations has a base ``recipe``, and a table for each configuration: ``model = "TFGW"`` or ``"GIN"``,
parameters of the estimator, and ``recipe.SETTING``, changes of the recipe; ``recipe.name`` uses a recipe of the package
as base instead. Results are JSON Lines with the probabilities of all test graphs, so that ensembles and calibration can
be computed afterwards. Finished runs are skipped.
"""

from common import parser, table  # isort: skip  (pins BLAS threads first)

import argparse
import json
import time
import tomllib
from collections import defaultdict
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from recipe_runs import FOLDS, Run, train

from tfgw.paper.calibration import calibration_bins, calibration_error


def read(path: Path) -> dict[Run, dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    return {Run(*(record[name] for name in Run._fields)): record for record in records}


def run_all(args: argparse.Namespace) -> None:
    recipe, configurations = itemgetter("recipe", "configurations")(tomllib.loads(args.configurations.read_text()))
    chosen = args.only or list(configurations)
    wanted = [
        Run(name, dataset, fold, seed)
        for seed in args.seeds
        for dataset in args.datasets
        for name in chosen
        for fold in range(args.folds)
    ]
    done = read(args.results)
    missing = [run for run in wanted if run not in done]
    tasks = (delayed(train)(run, configurations[run.configuration], recipe, args) for run in missing)
    end = time.monotonic() + args.minutes * 60
    with args.results.open("a") as file:
        for record in Parallel(n_jobs=args.jobs, batch_size=1, return_as="generator_unordered")(tasks):
            file.write(json.dumps(record) + "\n")
            file.flush()
            if time.monotonic() > end:
                print("time is up")
                break


def show(args: argparse.Namespace) -> None:
    """Mean accuracy over folds and seeds; the difference to a configuration, paired over folds and seeds of both, with
    its standard error over folds; votes; calibration.
    """
    records = read(args.results)
    for dataset in sorted({run.dataset for run in records}):
        by_fold: dict[str, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
        for run, record in sorted(records.items()):
            if run.dataset == dataset:
                by_fold[run.configuration][run.fold].append(record)
        rows = [[name, *_row(folds, by_fold.get(args.against, {}))] for name, folds in by_fold.items()]
        print(f"\n{dataset}\n")
        header = [
            "configuration",
            "folds × seeds",
            "accuracy",
            f"less {args.against}",
            "vote of seeds",
            "ECE",
            "train",
            "α",
            "s",
        ]
        table(header, sorted(rows, key=lambda row: row[2], reverse=True))


def _row(folds: dict[int, list[dict[str, Any]]], against: dict[int, list[dict[str, Any]]]) -> list[str]:
    means = [np.mean([record["accuracy"] for record in records]) for records in folds.values()]
    votes = [_vote(records) for records in folds.values()]
    everything = [record for records in folds.values() for record in records]
    seeds = f"{len(everything) / len(folds):.0f}"
    differences = [np.mean(found) for fold in folds if (found := _differences(folds[fold], against.get(fold, [])))]
    deviation = np.std(differences, ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else np.nan
    alphas = [record["alpha"] for record in everything if record["alpha"] is not None]
    return [
        f"{len(folds)} × {seeds}",
        f"{100 * np.mean(means):.1f}",
        f"{100 * np.mean(differences):+.1f} ± {100 * deviation:.1f}" if differences else "",
        f"{100 * np.mean(votes):.1f}",
        f"{100 * _calibration_error(everything):.1f}",
        f"{100 * np.mean([record['train_accuracy'] for record in everything]):.1f}",
        f"{np.mean(alphas):.2f}" if alphas else "",
        f"{np.median([record['seconds'] for record in everything]):.1f}",
    ]


def _differences(records: list[dict[str, Any]], against: list[dict[str, Any]]) -> list[float]:
    """Return the difference in accuracy for each seed of both."""
    known = {record["seed"]: record["accuracy"] for record in against}
    return [record["accuracy"] - known[record["seed"]] for record in records if record["seed"] in known]


def _vote(records: list[dict[str, Any]]) -> float:
    mean = np.mean([record["probabilities"] for record in records], axis=0)
    return float((mean.argmax(1) == records[0]["labels"]).mean())


def _calibration_error(records: list[dict[str, Any]]) -> float:
    probabilities = np.concatenate([record["probabilities"] for record in records])
    correct = probabilities.argmax(1) == np.concatenate([record["labels"] for record in records])
    return calibration_error([calibration_bins(probabilities.max(1), correct)])


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(datasets=["MUTAG", "PTC_MR", "ENZYMES", "IMDB-BINARY"])
    p.add_argument("what", choices=["run", "show"])
    p.add_argument("configurations", type=Path, nargs="?", default=Path(__file__).with_name("recipes.toml"))
    p.add_argument("--results", type=Path, default=Path("recipe_search.jsonl"))
    p.add_argument("--only", nargs="+", metavar="NAME", help="configurations to run (default: all)")
    p.add_argument("--against", default="base", help="configuration to compare with")
    p.add_argument("--seeds", type=int, nargs="+", default=[0])
    p.add_argument("--folds", type=int, default=FOLDS, help="number of the ten test folds to use")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--threads", type=int, default=2, help="threads of each job")
    p.add_argument("--minutes", type=float, default=1e6, help="stop after this time")
    p.add_argument("--accelerator", default="auto")
    args = p.parse_args()
    {"run": run_all, "show": show}[args.what](args)


if __name__ == "__main__":
    main()

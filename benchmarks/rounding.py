"""How much rounding changes the result of a training run: the same runs with other vector instructions.

python benchmarks/rounding.py --data-dir FOLDER --datasets PTC_MR

PyTorch and its BLAS library select instructions by processor, and the order of sums depends on them. Each row trains
the same models, one per test fold, with the same seeds, graphs and code; only what the row says differs from the first
row. Like the cells of the paper's experiments, a model keeps the epoch that a tenth of its graphs selects.
"""

from common import parser, table  # isort: skip  (pins BLAS threads first)

import argparse
import json
import os
import subprocess
import sys

import numpy as np
import torch
from recipe_runs import FOLDS, SPLIT_SEED, graphs_of
from sklearn.model_selection import StratifiedKFold, train_test_split

from tfgw.estimators import TFGWClassifier

VARIANTS: dict[str, dict[str, str]] = {
    "the same again": {},
    "AVX2": {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "no vector instructions in PyTorch": {"ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
}
DIVERGED = 1e-3
"""Relative difference of the training loss at which two runs have diverged."""


def run(name: str, args: argparse.Namespace) -> list[dict[str, object]]:
    """Train a model for each test fold. Return its accuracy and its training losses."""
    torch.set_num_threads(1)
    graphs, y = graphs_of(name, args.data_dir)
    found = []
    for kept, test in StratifiedKFold(FOLDS, shuffle=True, random_state=SPLIT_SEED).split(y, y):
        train, chosen = train_test_split(kept, test_size=0.1, stratify=y[kept], random_state=0)
        model = TFGWClassifier(
            recipe="paper",
            num_layers=args.layers,
            num_templates=8,
            epochs=args.epochs,
            random_state=args.seed,
            accelerator="cpu",
        )
        model.fit([graphs[i] for i in train], y[train], validation=([graphs[i] for i in chosen], y[chosen]))
        accuracy = model.score([graphs[i] for i in test], y[test])
        found.append({"accuracy": 100 * accuracy, "losses": [record.loss for record in model.history_]})
    return found


def run_apart(
    name: str, args: argparse.Namespace, environment: dict[str, str], *, seed: int
) -> list[dict[str, object]]:
    """Run in a process of its own, because instructions are selected when a process starts."""
    options = {"child": name, "epochs": args.epochs, "layers": args.layers, "seed": seed}
    command = [sys.executable, __file__, *(str(part) for k, v in options.items() for part in (f"--{k}", v))]
    if args.data_dir:
        command += ["--data-dir", args.data_dir]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(datasets=["PTC_MR"])
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--layers", type=int, default=0, help="GIN layers")
    p.add_argument("--child", metavar="NAME", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.child:
        print(json.dumps(run(args.child, args)))
        return
    for name in args.datasets:
        first = run_apart(name, args, {}, seed=args.seed)
        rows = [["first run", f"{np.mean([one['accuracy'] for one in first]):.1f}", "", "", ""]]
        others = {variant: run_apart(name, args, change, seed=args.seed) for variant, change in VARIANTS.items()}
        others["another seed"] = run_apart(name, args, {}, seed=args.seed + 1)
        for variant, other in others.items():
            accuracies = np.array([[a["accuracy"], b["accuracy"]] for a, b in zip(first, other, strict=True)])
            losses = np.array([[a["losses"], b["losses"]] for a, b in zip(first, other, strict=True)])
            apart = np.abs(losses[:, 0] / losses[:, 1] - 1) > DIVERGED
            epochs = np.where(apart.any(1), apart.argmax(1) + 1, np.inf)
            change = np.abs(accuracies[:, 0] - accuracies[:, 1])
            rows.append([
                variant, f"{accuracies[:, 1].mean():.1f}", f"{change.mean():.1f}", f"{change.max():.1f}",
                "never" if np.isinf(np.median(epochs)) else f"{np.median(epochs):.0f}",
            ])  # fmt: skip
        print(f"\n{name}: {FOLDS} test folds, {args.epochs} epochs, {args.layers} layers\n")
        table(["", "mean accuracy", "mean change of a fold", "largest", "losses differ from epoch (median)"], rows)


if __name__ == "__main__":
    main()

"""Accuracy of a classifier with and without canonical node order, and with several solver starts.

    python benchmarks/accuracy.py --data-dir FOLDER --dataset MUTAG --epochs 20

Ten stratified folds; in each, a model is trained on nine tenths and tested on the rest. Nothing is selected: there is
one fixed configuration, with the weights of the last epoch.
"""

from common import read, table  # isort: skip  (pins BLAS threads first)

import argparse
import itertools
import sys
import time

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold

from tfgw.estimators import TFGWClassifier


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--dataset", default="MUTAG")
    parser.add_argument("--starts", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dataset = read(args.dataset, args.data_dir)
    graphs, y = list(dataset), dataset.y.numpy()
    folds = list(StratifiedKFold(args.folds, shuffle=True, random_state=args.seed).split(graphs, y))
    rows = []
    for starts, canonical in itertools.product(args.starts, (True, False)):
        began, scores = time.perf_counter(), []
        for number, (train, test) in enumerate(folds):
            model = TFGWClassifier(
                n_starts=starts,
                canonical_order=canonical,
                epochs=args.epochs,
                batch_size=args.batch_size,
                random_state=args.seed + number,
                accelerator="cpu",
            ).fit([graphs[i] for i in train], y[train])
            scores.append(model.score([graphs[i] for i in test], y[test]))
            print(
                f"{starts} starts, canonical {canonical}, fold {number}: {scores[-1]:.3f}", file=sys.stderr, flush=True
            )
        accuracy = f"{100 * np.mean(scores):.1f} ± {100 * np.std(scores):.1f}"
        rows.append(
            [
                args.dataset,
                str(starts),
                "canonical" if canonical else "file",
                accuracy,
                f"{time.perf_counter() - began:.0f}",
            ]
        )
    print(f"{args.folds} folds, {args.epochs} epochs, batches of {args.batch_size}; ± over folds\n")
    table(["dataset", "starts", "node order", "accuracy, %", "seconds"], rows)


if __name__ == "__main__":
    main()

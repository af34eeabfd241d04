"""Ablation of the kernel machine: each part changed or removed, on development splits.

python benchmarks/kernel_ablation.py --data-dir FOLDER --datasets MUTAG PTC_MR ENZYMES IMDB-BINARY

Differences to the complete machine are paired over the folds of three divisions of each dataset into ten folds, none of
which is that of the protocol `fair`. Their intervals account for shared training graphs (Nadeau and Bengio, 2003).
"""

from common import parser, table  # isort: skip  (pins BLAS threads first)

import time
from typing import Any, NamedTuple

import numpy as np
import torch
from recipe_runs import FOLDS, SPLIT_SEED, graphs_of
from sklearn.model_selection import StratifiedKFold

from tfgw import ot
from tfgw.nn import KernelConfig
from tfgw.nn.graph_distance import GraphDistance
from tfgw.paper.comparison import corrected_t_test
from tfgw.train import Preprocessing
from tfgw.train.kernel_pipeline import described_graphs, kernel_config
from tfgw.train.kernel_ridge import RidgeFit, fit_ridge, mixture_weights

LAST = max(KernelConfig.levels)


class Held(NamedTuple):
    """Scores of the graphs of a test fold, and the machine that was trained on the other graphs."""

    scores: np.ndarray
    machine: RidgeFit


Distances = dict[GraphDistance, torch.Tensor]
Fold = tuple[np.ndarray, np.ndarray]


def distances_of(name: str, data_dir: str | None) -> tuple[Distances, np.ndarray]:
    """Return the distances of each kind between all graphs, and the classes."""
    graphs, y = graphs_of(name, data_dir)
    graphs = Preprocessing.fit(graphs, canonical_order=False)(graphs)
    config = kernel_config(graphs, len(np.unique(y)), alphas=KernelConfig.alphas)
    found = {kind: ot.pairwise(described, **kind.options) for kind, described in described_graphs(graphs, config)}
    return found, y


def held_out(distances: torch.Tensor, y: np.ndarray, fold: Fold, **options: Any) -> Held:
    targets = torch.nn.functional.one_hot(torch.from_numpy(y)).double()
    targets -= 1 / targets.shape[1]
    train, test = map(torch.from_numpy, fold)
    machine = fit_ridge(distances[train][:, train], targets[train], **options)
    kernel = torch.exp(-machine.rate * distances[test][:, train])
    return Held((kernel @ machine.coefficients).numpy(), machine)


def accuracy(held: list[Held], known: np.ndarray, *, weights: torch.Tensor | None = None) -> float:
    """Return the accuracy of a weighted mean of scores, by default with the weights of the machine."""
    shares = mixture_weights([one.machine for one in held]) if weights is None else weights
    scores = sum(float(share) * one.scores for share, one in zip(shares, held, strict=True))
    return float((scores.argmax(1) == known).mean())  # type: ignore[union-attr]


def accuracies(distances: Distances, y: np.ndarray, fold: Fold) -> dict[str, float]:
    """Return the accuracy of the complete machine and of each variant on a test fold."""
    found = {kind: held_out(one, y, fold) for kind, one in distances.items()}
    variants = {
        "complete": list(found.values()),
        "no degrees": [held for kind, held in found.items() if kind.nodes.kind != "degrees"],
        "degrees only": [held for kind, held in found.items() if kind.nodes.kind == "degrees"],
        "no structure (α = 0 and degrees)": [held for kind, held in found.items() if kind.alpha == 0],
        "α = 0.5 only": [held for kind, held in found.items() if kind.alpha == 0.5],
        f"no levels above {LAST}": [held for kind, held in found.items() if kind.nodes.level <= LAST],
        "no refinement (level 0)": [held for kind, held in found.items() if kind.nodes.level == 0],
        f"last level only (level {LAST})": [held for kind, held in found.items() if kind.nodes.level == LAST],
        "no averaging: the distance with the smallest leave-one-out error": [
            min(found.values(), key=lambda held: held.machine.error)
        ],
        "γ = 1 / median distance, not selected": [held_out(one, y, fold, rates=(1.0,)) for one in distances.values()],
        "square roots of the distances": [held_out(one.sqrt(), y, fold) for one in distances.values()],
    }
    known = y[fold[1]]
    equal = torch.full((len(found),), 1 / len(found))
    plain = {"equal weights": accuracy(variants["complete"], known, weights=equal)}
    return {name: accuracy(held, known) for name, held in variants.items()} | plain


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(datasets=["MUTAG", "PTC_MR", "ENZYMES", "IMDB-BINARY"])
    p.add_argument("--divisions", type=int, default=3, help="divisions into ten folds")
    args = p.parse_args()
    for name in args.datasets:
        begin = time.perf_counter()
        distances, y = distances_of(name, args.data_dir)
        folds = [
            fold
            for seed in range(SPLIT_SEED, SPLIT_SEED + args.divisions)
            for fold in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(y, y)
        ]
        results = [accuracies(distances, y, fold) for fold in folds]
        complete = np.array([one["complete"] for one in results])
        rows = []
        for variant in results[0]:
            values = np.array([one[variant] for one in results])
            row = [variant, f"{100 * values.mean():.1f}", ""]
            if variant != "complete":
                mean, half, _ = corrected_t_test(100 * (values - complete), test_share=1 / (FOLDS - 1))
                row[2] = f"{mean:+.1f} ± {half:.1f}"
            rows.append(row)
        print(f"\n{name}: {len(folds)} test folds, {time.perf_counter() - begin:.0f} s\n")
        table(["kernel machine", "accuracy, %", "difference, 95 % interval"], rows)


if __name__ == "__main__":
    main()

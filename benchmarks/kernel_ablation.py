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
from tfgw.nn.kernel_model import KernelConfig
from tfgw.paper.comparison import corrected_t_test
from tfgw.train import Preprocessing
from tfgw.train.kernel_pipeline import is_discrete, refined_graphs
from tfgw.train.kernel_ridge import fit_ridge

LEVELS, ALPHAS = KernelConfig.levels, KernelConfig.alphas
LAST = max(LEVELS)


class Held(NamedTuple):
    """Scores of the graphs of a test fold, and the leave-one-out error on the other graphs."""

    scores: np.ndarray
    error: float


Distances = dict[tuple[int, float], torch.Tensor]
Fold = tuple[np.ndarray, np.ndarray]


def distances_of(name: str, data_dir: str | None) -> tuple[Distances, np.ndarray]:
    """Return the distances between all graphs for each level and α, and the classes."""
    graphs, y = graphs_of(name, data_dir)
    graphs = Preprocessing.fit(graphs, canonical_order=False)(graphs)
    discrete = is_discrete(graphs)
    found = {}
    for level in LEVELS:
        refined = refined_graphs(graphs, level, discrete=discrete)
        for alpha in ALPHAS:
            found[level, alpha] = ot.pairwise(refined, alpha=alpha, canonical=False)
    return found, y


def held_out(distances: torch.Tensor, y: np.ndarray, fold: Fold, **options: Any) -> Held:
    targets = torch.nn.functional.one_hot(torch.from_numpy(y)).double()
    targets -= 1 / targets.shape[1]
    train, test = map(torch.from_numpy, fold)
    machine = fit_ridge(distances[train][:, train], targets[train], **options)
    kernel = torch.exp(-machine.rate * distances[test][:, train])
    return Held((kernel @ machine.coefficients).numpy(), machine.error)


def accuracies(distances: Distances, y: np.ndarray, fold: Fold) -> dict[str, float]:
    """Return the accuracy of the complete machine and of each variant on a test fold."""
    found = {key: held_out(one, y, fold) for key, one in distances.items()}
    roots = [held_out(one.sqrt(), y, fold) for one in distances.values()]
    fixed = [held_out(one, y, fold, rates=(1.0,)) for one in distances.values()]
    best = min(found.values(), key=lambda held: held.error)
    variants = {
        "complete": list(found.values()),
        "features only (α = 0)": [found[level, 0.0] for level in LEVELS],
        "α = 0.5 only": [found[level, 0.5] for level in LEVELS],
        "no refinement (level 0)": [found[0, alpha] for alpha in ALPHAS],
        f"last level only (level {LAST})": [found[LAST, alpha] for alpha in ALPHAS],
        "no averaging: the distance with the smallest leave-one-out error": [best],
        "γ = 1 / median distance, not selected": fixed,
        "square roots of the distances": roots,
    }
    known = y[fold[1]]
    return {
        name: float((np.mean([h.scores for h in held], 0).argmax(1) == known).mean()) for name, held in variants.items()
    }


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

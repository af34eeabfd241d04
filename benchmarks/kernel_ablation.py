"""Ablation of the kernel machine: each part changed or removed, on development splits.

python benchmarks/kernel_ablation.py --data-dir FOLDER --datasets MUTAG PTC_MR ENZYMES IMDB-BINARY

Differences to the complete machine are paired over the folds of three divisions of each dataset into ten folds, none of
which is that of the protocol `fair`. Their intervals account for shared training graphs (Nadeau and Bengio, 2003).

`--variants combination` compares ways to combine distances only, which is feasible for thousands of graphs.
"""

from common import parser, table  # isort: skip  (pins BLAS threads first)

import argparse
import time
from typing import Any, NamedTuple

import numpy as np
import torch
from recipe_runs import FOLDS, SPLIT_SEED, graphs_of
from sklearn.model_selection import StratifiedKFold

from tfgw import ot
from tfgw.nn import KernelConfig
from tfgw.nn.graph_distance import GraphDistance, NodeDescription
from tfgw.paper.comparison import corrected_t_test
from tfgw.train import Preprocessing
from tfgw.train.kernel_pipeline import (
    CLEAR_ADVANTAGE,
    described_graphs,
    kernel_config,
    useful_distances,
    with_description,
)
from tfgw.train.kernel_ridge import (
    LARGEST_DECOMPOSITION,
    RidgeFit,
    advantage,
    fit_ridge,
    mean_left_out,
    mixture_weights,
    typical_distance,
)

LAST = max(KernelConfig.levels)


class Held(NamedTuple):
    """Scores of the graphs of a test fold, and the machine that was trained on the other graphs."""

    scores: np.ndarray
    machine: RidgeFit


Distances = dict[GraphDistance, torch.Tensor]
Fold = tuple[np.ndarray, np.ndarray]


class Compared(NamedTuple):
    """A dataset: classes, and distances between all graphs."""

    config: KernelConfig
    y: np.ndarray
    distances: Distances
    squared: Distances
    """With squared costs, in the place of the distances without structure at each of ``config.levels``."""


def compared(name: str, args: argparse.Namespace) -> Compared:
    graphs, y = graphs_of(name, args.data_dir)
    graphs = Preprocessing.fit(graphs, canonical_order=False)(graphs)
    config = kernel_config(graphs, len(np.unique(y)), combine="distances")
    found = {
        kind: ot.pairwise(described, **kind.options).to(args.device)
        for kind, described in described_graphs(graphs, config)
    }
    squared = {}
    for level in config.levels if args.variants == "all" else ():
        nodes = NodeDescription("codes" if config.features == "labels" else "averages", level)
        squared[config.feature_distance(level, 0.0)] = ot.pairwise(
            with_description(graphs, nodes), alpha=0.0, canonical=False
        )
    return Compared(config, y, found, squared)


def targets_of(y: np.ndarray) -> torch.Tensor:
    targets = torch.nn.functional.one_hot(torch.from_numpy(y)).double()
    return targets - 1 / targets.shape[1]


def held_out(distances: torch.Tensor, y: np.ndarray, fold: Fold, **options: Any) -> Held:
    train, test = (torch.from_numpy(part).to(distances.device) for part in fold)
    machine = fit_ridge(distances[train][:, train], targets_of(y).to(train.device)[train], **options)
    kernel = torch.exp(-machine.rate * distances[test][:, train])
    return Held((kernel @ machine.coefficients).cpu().numpy(), machine.cpu())


def joint_machine(distances: list[torch.Tensor], y: np.ndarray, fold: Fold) -> Held:
    """One regression on the sum of all distances, each relative to its median."""
    total = sum((one / typical_distance(one) for one in distances), torch.zeros((), device=distances[0].device))
    return held_out(total, y, fold)


def accuracy(held: list[Held], known: np.ndarray, *, weights: torch.Tensor | None = None) -> float:
    """Return the accuracy of a weighted mean of scores, by default with the weights of the machine."""
    shares = mixture_weights([one.machine for one in held]) if weights is None else weights
    scores = sum(float(share) * one.scores for share, one in zip(shares, held, strict=True))
    return float((scores.argmax(1) == known).mean())  # type: ignore[union-attr]


def accuracies(data: Compared, fold: Fold, *, all_variants: bool) -> tuple[dict[str, float], float]:
    """Return the accuracy of the complete machine and of each variant on a test fold, and the :func:`advantage` of one
    regression.
    """
    config, y, distances, _ = data
    every = {kind: held_out(one, y, fold) for kind, one in distances.items()}
    useful = [kind for kind, _ in useful_distances(config, ((kind, held.machine) for kind, held in every.items()))]
    kinds = [kind for kind in useful if kind.nodes.kind != "clustering"]
    found = {kind: every[kind] for kind in kinds}
    separate = list(found.values())
    joint = joint_machine([distances[kind] for kind in useful], y, fold)
    machines = [held.machine for held in separate]
    gain = advantage(joint.machine.left_out, mean_left_out(machines), targets_of(y[fold[0]]))
    is_joint = len(fold[0]) > LARGEST_DECOMPOSITION and gain > CLEAR_ADVANTAGE
    known = y[fold[1]]
    combinations = {
        "complete": [joint] if is_joint else separate,
        "the mean of scores": separate,
        "the mean of scores, with clustering": [every[kind] for kind in useful],
        "one regression on the sum of all distances": [joint],
        "one regression, without clustering": [joint_machine([distances[kind] for kind in kinds], y, fold)],
    }
    combined = {name: accuracy(held, known) for name, held in combinations.items()}
    if not all_variants:
        return combined, gain
    squared = {kind: held_out(one, y, fold) for kind, one in data.squared.items()}
    variants = {
        "no degrees": [held for kind, held in found.items() if kind.nodes.kind != "degrees"],
        "no cycles": [held for kind, held in found.items() if kind.nodes.kind != "cycles"],
        "neither degrees nor cycles": [
            held for kind, held in found.items() if kind.nodes.kind not in ("degrees", "cycles")
        ],
        "degrees only": [held for kind, held in found.items() if kind.nodes.kind == "degrees"],
        "no structure (α = 0 alone)": [held for kind, held in found.items() if kind.alpha == 0],
        "α = 0.5 only": [held for kind, held in found.items() if kind.alpha == 0.5],
        "squared costs at α = 0": list((found | squared).values()),
        f"no levels above {LAST}": [held for kind, held in found.items() if kind.nodes.level <= LAST],
        "all levels": list(every.values()),
        "no refinement (level 0)": [held for kind, held in found.items() if kind.nodes.level == 0],
        f"last level only (level {LAST})": [held for kind, held in found.items() if kind.nodes.level == LAST],
        "no averaging: the distance with the smallest leave-one-out error": [
            min(found.values(), key=lambda held: held.machine.error)
        ],
        "γ = 1 / median distance, not selected": [held_out(distances[kind], y, fold, rates=(1.0,)) for kind in kinds],
        "square roots of the distances": [held_out(distances[kind].sqrt(), y, fold) for kind in kinds],
    }
    weights = mixture_weights(machines)
    weighted = {
        name: accuracy(separate, known, weights=weights**power / (weights**power).sum())
        for name, power in {"equal weights": 0, "weights ∝ r": 0.5, "weights ∝ r⁴": 2}.items()
    }
    return combined | {name: accuracy(held, known) for name, held in variants.items()} | weighted, gain


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(datasets=["MUTAG", "PTC_MR", "ENZYMES", "IMDB-BINARY"])
    p.add_argument("--divisions", type=int, default=3, help="divisions into ten folds")
    p.add_argument("--variants", choices=["all", "combination"], default="all")
    p.add_argument("--device", default="cpu", help="device of the regressions; distances are computed on the CPU")
    args = p.parse_args()
    for name in args.datasets:
        begin = time.perf_counter()
        data = compared(name, args)
        folds = [
            fold
            for seed in range(SPLIT_SEED, SPLIT_SEED + args.divisions)
            for fold in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(data.y, data.y)
        ]
        found = [accuracies(data, fold, all_variants=args.variants == "all") for fold in folds]
        results, gains = zip(*found, strict=True)
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
        print(
            f"\nAdvantage of one regression in each fold: {', '.join(f'{gain:.1f}' for gain in gains)} standard errors"
        )


if __name__ == "__main__":
    main()

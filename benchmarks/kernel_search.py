"""Kernel machines by level of refinement and α, on development splits: not the test folds of the protocol ``fair``.

python benchmarks/kernel_search.py --data-dir FOLDER --datasets MUTAG PTC_MR --levels 0 1 2 3 --alphas 0 0.5

Accuracy of each distance alone, and of the mean of their scores for each level, for each α, for degrees, for cycles and
for all. (A kernel machine weights its distances; see kernel_ablation.py.) Distances are computed once per dataset;
features are standardised over all graphs, which uses no labels.
"""

from common import parser, table  # isort: skip  (pins BLAS threads first)

import time

import numpy as np
import torch
from recipe_runs import FOLDS, SPLIT_SEED, graphs_of
from sklearn.model_selection import StratifiedKFold

from tfgw import ot
from tfgw.train import Preprocessing
from tfgw.train.kernel_pipeline import described_graphs, kernel_config
from tfgw.train.kernel_ridge import fit_ridge


def held_out_scores(distances: torch.Tensor, y: np.ndarray) -> np.ndarray:
    """Scores of each graph by a machine that was trained without its fold."""
    classes = torch.from_numpy(y).to(distances.device)
    targets = torch.nn.functional.one_hot(classes).double()
    targets -= 1 / targets.shape[1]
    scores = torch.zeros_like(targets)
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=SPLIT_SEED).split(y, y):
        kept, left = (torch.from_numpy(part).to(distances.device) for part in (train, test))
        machine = fit_ridge(distances[kept][:, kept], targets[kept])
        scores[left] = torch.exp(-machine.rate * distances[left][:, kept]) @ machine.coefficients
    return scores.cpu().numpy()


def accuracy(scores: list[np.ndarray], y: np.ndarray) -> str:
    correct = np.mean(scores, axis=0).argmax(1) == y
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SPLIT_SEED).split(y, y)
    means = [100 * correct[test].mean() for _, test in folds]
    return f"{np.mean(means):.1f} ± {np.std(means, ddof=1) / np.sqrt(FOLDS):.1f}"


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(datasets=["MUTAG", "PTC_MR"])
    p.add_argument("--levels", type=int, nargs="+", default=[0, 1, 2, 3])
    p.add_argument("--alphas", type=float, nargs="+", default=[0.0, 0.5])
    p.add_argument("--device", default="cpu")
    args = p.parse_args()
    for name in args.datasets:
        begin = time.perf_counter()
        graphs, y = graphs_of(name, args.data_dir)
        graphs = Preprocessing.fit(graphs, canonical_order=False)(graphs)
        config = kernel_config(graphs, len(np.unique(y)), levels=args.levels, alphas=args.alphas)
        scores = {}
        for kind, described in described_graphs(graphs, config):
            found = ot.pairwise(described, **kind.options, device=args.device)
            scores[kind] = held_out_scores(found, y)
        columns = [f"α = {alpha:g}" for alpha in args.alphas] + ["degrees"] + ["cycles"] * config.cycles
        by_level = {level: [scores[kind] for kind in scores if kind.nodes.level == level] for level in args.levels}
        rows = [
            [f"level {level}", *(accuracy([one], y) for one in found), accuracy(found, y)]
            for level, found in by_level.items()
        ]
        means = [accuracy(list(column), y) for column in zip(*by_level.values(), strict=True)]
        rows.append(["mean of all levels", *means, accuracy(list(scores.values()), y)])
        print(f"\n{name}: accuracy ± standard error over {FOLDS} folds, {time.perf_counter() - begin:.0f} s\n")
        table(["", *columns, "mean of all"], rows)


if __name__ == "__main__":
    main()

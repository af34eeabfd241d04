"""CPU time to train a kernel machine, extrapolated from random pairs of training graphs.

python benchmarks/kernel_time.py --data-dir FOLDER
"""

from common import parser, table  # isort: skip  (pins BLAS threads first)

import time

import numpy as np
import torch
from torch_geometric.data import Data

from tfgw import ot
from tfgw.datasets import load, random_split
from tfgw.estimators.distance_table import key_of
from tfgw.nn import KernelConfig
from tfgw.ot.graph_lists import read_graphs
from tfgw.train import Preprocessing
from tfgw.train.kernel_pipeline import is_discrete, refined_graphs

SAMPLE, PAIRS = 300, 2000


def seconds_per_pair(graphs: list[Data], alpha: float, pairs: np.ndarray) -> float:
    """CPU time of a pair, without that of reading the graphs; the better of two measurements."""
    known = read_graphs(graphs, features_only=alpha == 0)

    def measure() -> float:
        begin = time.process_time()
        ot.pairwise(known, alpha=alpha, canonical=False, num_threads=1, pairs=pairs)
        return time.process_time() - begin

    return min(measure(), measure()) / len(pairs)


def main() -> None:
    args = parser(__doc__).parse_args()
    torch.set_num_threads(1)
    rng, rows = np.random.default_rng(args.seed), []
    for name in args.datasets:
        dataset = load(name, data_dir=args.data_dir)
        train = dataset[random_split(dataset, val=0.0, test=0.1, seed=0).train]
        prepared = Preprocessing.fit(train)(train)
        discrete = is_discrete(prepared)
        chosen = [prepared[int(number)] for number in rng.permutation(len(prepared))[:SAMPLE]]
        pairs = rng.integers(0, len(chosen), (PAIRS, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        each = []
        for level in KernelConfig.levels:
            refined = refined_graphs(chosen, level, discrete=discrete)
            each += [seconds_per_pair(refined, alpha, pairs) for alpha in KernelConfig.alphas]
        different = len({key_of(graph) for graph in prepared})
        nodes, total = sum(graph.num_nodes for graph in prepared), sum(each) * different * (different - 1) / 2
        columns = [refined_graphs(chosen[:1], level, discrete=discrete)[0].x.shape[1] for level in (0, 3)]
        rows.append([
            name, f"{len(train):,}", f"{nodes:,}", f"{columns[0]} to {columns[1]}",
            " / ".join(f"{1e6 * value:.0f}" for value in (each[0], each[-2])),
            " / ".join(f"{1e6 * value:.0f}" for value in (each[1], each[-1])),
            f"{total:,.0f}",
        ])  # fmt: skip
    header = ["dataset", "training graphs", "nodes", "columns, level 0 to 3", "µs per pair, α = 0, level 0 / 3",
              "α = 0.5", "CPU seconds, all pairs"]  # fmt: skip
    table(header, rows)


if __name__ == "__main__":
    main()

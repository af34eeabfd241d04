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
from tfgw.nn.graph_distance import GraphDistance, NodeDescription
from tfgw.ot.graph_lists import read_graphs
from tfgw.train import Preprocessing
from tfgw.train.kernel_pipeline import described_graphs, kernel_config

SAMPLE, PAIRS = 300, 5000


def seconds_per_pair(graphs: list[Data], kind: GraphDistance, pairs: np.ndarray) -> float:
    """CPU time of a pair, without that of reading and preparing the graphs; the better of two measurements."""
    known = read_graphs(graphs, features_only=kind.alpha == 0)

    def measure(some: np.ndarray) -> float:
        begin = time.process_time()
        ot.pairwise(known, **kind.options, num_threads=1, pairs=some)
        return time.process_time() - begin

    all_pairs, one_pair = (min(measure(some), measure(some)) for some in (pairs, pairs[:1]))
    return (all_pairs - one_pair) / (len(pairs) - 1)


def main() -> None:
    args = parser(__doc__).parse_args()
    torch.set_num_threads(1)
    rng, rows = np.random.default_rng(args.seed), []
    for name in args.datasets:
        dataset = load(name, data_dir=args.data_dir)
        train = dataset[random_split(dataset, val=0.0, test=0.1, seed=0).train]
        prepared = Preprocessing.fit(train)(train)
        config = kernel_config(prepared, prepared.num_classes, alphas=KernelConfig.alphas)
        chosen = [prepared[int(number)] for number in rng.permutation(len(prepared))[:SAMPLE]]
        pairs = rng.integers(0, len(chosen), (PAIRS, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        each = {kind: seconds_per_pair(described, kind, pairs) for kind, described in described_graphs(chosen, config)}
        different = len({key_of(graph) for graph in prepared})
        nodes, total = sum(graph.num_nodes for graph in prepared), sum(each.values()) * different * (different - 1) / 2
        ends = min(config.levels), max(config.levels)
        kinds = [
            *([each[config.feature_distance(level, alpha)] for level in ends] for alpha in config.alphas),
            [each[GraphDistance(NodeDescription("degrees", level), 0.0)] for level in ends],
        ]
        rows.append([
            name, f"{len(train):,}", f"{nodes:,}",
            *(f"{1e6 * found[0]:.1f} / {1e6 * found[-1]:.1f}" for found in kinds),
            f"{total:,.0f}",
        ])  # fmt: skip
    header = ["dataset", "training graphs", "nodes", "µs per pair, α = 0, level 0 / 3", "α = 0.5", "degrees",
              "CPU seconds, all pairs"]  # fmt: skip
    table(header, rows)


if __name__ == "__main__":
    main()

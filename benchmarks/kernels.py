"""Distances between all pairs of graphs of a dataset, as the kernels need them, against POT on a sample of the pairs.

python benchmarks/kernels.py --data-dir FOLDER
"""

from common import parser, read, seconds, table  # isort: skip  (pins BLAS threads first)

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ot as pot
from torch_geometric.data import Data

from tfgw.baselines import FGWKernel
from tfgw.baselines.fgw_kernel import FGWComparison
from tfgw.baselines.wwl import WWLComparison
from tfgw.estimators.distance_table import Comparison, all_pairs, key_of

TARGETS = {("MUTAG", "fgw"): 10.0, ("ENZYMES", "fgw"): 240.0, ("MUTAG", "wwl"): 3.0}
"""Seconds that a matrix may take on two cores."""


def structure_of(graph: Data) -> np.ndarray:
    if "structure" in graph:
        return graph.structure.reshape(len(graph.x), -1).numpy()
    matrix = np.zeros((len(graph.x), len(graph.x)))
    matrix[tuple(graph.edge_index.numpy())] = 1
    return matrix


def pot_fgw(large: Data, small: Data) -> float:
    cost = pot.dist(large.x.numpy(), small.x.numpy())
    value = pot.fused_gromov_wasserstein2(cost, structure_of(large), structure_of(small), alpha=0.5)
    return float(value)


def pot_wwl(large: Data, small: Data) -> float:
    a, b = large.x.numpy(), small.x.numpy()
    is_label = np.abs(a).max() > 2**40  # numbers of labels are hashes
    cost = (a[:, None] != b[None]).mean(-1) if is_label else pot.dist(a, b, metric="euclidean")
    return float(pot.emd2([], [], cost))


def measure(name: str, graphs: list[Any], comparison: Comparison, peer: Callable[..., float], args: Any) -> list[str]:
    cpu, wall = time.process_time(), time.perf_counter()
    found = all_pairs(graphs, comparison)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    pairs = len(graphs) * (len(graphs) - 1) // 2
    keys = [key_of(graph) for graph in graphs]
    rng = np.random.default_rng(args.seed)
    times, ours, theirs = [], [], []
    for i, j in (sorted(rng.choice(len(graphs), 2, replace=False)) for _ in range(args.sample)):
        ours.append(float(found.between([keys[i]], [keys[j]])[0, 0]))
        small, large = sorted((graphs[i], graphs[j]), key=lambda graph: (graph.num_nodes, key_of(graph)))
        prepared = comparison.prepare(large), comparison.prepare(small)
        times.append(seconds(lambda large, small: theirs.append(peer(large, small)), *prepared))
    target = TARGETS.get((name, comparison.name.split("-")[0]))
    return [
        name,
        comparison.name,
        f"{pairs:,}",
        f"{wall:.2f}",
        f"{cpu:.2f}",
        f"{target:.0f}" if target else "",
        f"{1e6 * wall / pairs:.1f}",
        f"{1e6 * statistics.mean(times):.1f}",
        f"{statistics.mean(times) * pairs / wall:.0f}×",
        f"{np.mean(ours) / np.mean(theirs):.4f}",
    ]


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(datasets=["MUTAG", "ENZYMES"])
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--sample", type=int, default=300, help="pairs that POT solves")
    args = p.parse_args()
    rows = []
    for name in args.datasets:
        graphs = FGWKernel()._as_graphs(list(read(name, args.data_dir)))
        version = "discrete" if set(np.unique(graphs[0].x)) <= {0.0, 1.0} else "continuous"
        for comparison, peer in (
            (FGWComparison(0.5, "adjacency", num_threads=args.threads), pot_fgw),
            (FGWComparison(0.5, "shortest_path", num_threads=args.threads), pot_fgw),
            (WWLComparison(3, version, num_threads=args.threads), pot_wwl),
        ):
            rows.append(measure(name, graphs, comparison, peer, args))
    print(f"{args.threads} threads, POT one on {args.sample} pairs; load of the machine {os.getloadavg()[0]:.1f}\n")
    header = "dataset, distance, pairs, seconds, CPU s, target, µs/pair, POT µs/pair, faster, value/POT"
    table(header.split(", "), rows)


if __name__ == "__main__":
    main()

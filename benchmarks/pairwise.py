"""Distances between all pairs of a dataset and nearest neighbours, against POT and against pairs solved one by one.

python benchmarks/pairwise.py --data-dir FOLDER                             # samples of 400 graphs
python benchmarks/pairwise.py --datasets NCI1 --graphs 0                    # the whole dataset
python benchmarks/pairwise.py --datasets NCI1 --graphs 0 --queries 100      # some of its graphs with all
python benchmarks/pairwise.py --datasets NCI1 --graphs 0 --device cuda --threads 16      # on a GPU
"""

from common import parser, read, table  # isort: skip  (pins BLAS threads first)

import os
import time
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from tfgw import ot
from tfgw.datasets import CanonicalOrder
from tfgw.ot.backends.cuda.kernel_limits import SIZE_CLASSES
from tfgw.ot.graph_lists import read_lists
from tfgw.ot.pair_solver import PairGrid, PairOptions, PairSolver
from tfgw.ot.ragged import ragged_set


def sample(name: str, args: Any) -> tuple[list[Data], int]:
    """Random graphs in canonical order, and the number of graphs in the dataset."""
    dataset = list(read(name, args.data_dir))
    count = args.graphs or len(dataset)
    chosen = np.random.default_rng(args.seed).permutation(len(dataset))[:count]
    graphs = [Data(x=dataset[i].x, edge_index=dataset[i].edge_index) for i in chosen]
    return [CanonicalOrder()(graph) for graph in graphs], len(dataset)


def matrix(graph: Data) -> torch.Tensor:
    dense = torch.zeros(len(graph.x), len(graph.x), dtype=torch.float64)
    dense[graph.edge_index[0], graph.edge_index[1]] = 1
    return dense


def alone(large: Data, small: Data, alpha: float) -> float:
    """One pair, by the solver for graphs and templates."""
    templates = ot.Templates(small.x[None], matrix(small)[None])
    found = ot.fgw(ot.GraphBatch(large.x, edge_index=large.edge_index), templates, alpha, plans=None)
    return float(found.distances)


def pot_alone(large: Data, small: Data, alpha: float) -> float:
    import ot as pot  # which the machine with the GPU need not have

    cost = pot.dist(large.x.numpy(), small.x.numpy())
    structures = matrix(large).numpy(), matrix(small).numpy()
    return float(pot.gromov.fused_gromov_wasserstein2(cost, *structures, alpha=alpha))


def measured(run: Any) -> tuple[Any, float, float]:
    """The result, the seconds it took, and those of all threads together."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = run()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def some_pairs(rows: list[Data], columns: list[Data], distances: np.ndarray, args: Any) -> tuple[float, float, float]:
    """Largest difference from pairs solved alone, CPU seconds of POT for one, and mean value relative to POT."""
    pot_alone(rows[0], columns[1], args.alpha)  # which loads POT
    rng = np.random.default_rng(args.seed)
    ours, theirs, one_by_one, times = [], [], [], []
    while len(ours) < args.sample:
        i, j = int(rng.integers(len(rows))), int(rng.integers(len(columns)))
        large, small = sorted((rows[i], columns[j]), key=lambda graph: -len(graph.x))
        if len(large.x) == len(small.x):  # which of them is the template is not known here
            continue
        ours.append(distances[i, j])
        one_by_one.append(alone(large, small, args.alpha))
        value, _, cpu = measured(lambda pair=(large, small): pot_alone(*pair, args.alpha))
        theirs.append(value)
        times.append(cpu)
    difference = float(np.abs(np.array(ours) - one_by_one).max())
    return difference, float(np.mean(times)), float(np.mean(ours) / np.mean(theirs))


def bound_times(graphs: list[Data], args: Any) -> list[str]:
    """Processor time of the two lower bounds, in µs per pair."""
    found = ragged_set(read_lists(graphs[:400], None, features_only=False), canonical=True)
    options = PairOptions.checked(args.alpha, 1000, 1e-9, 1, ot.START_KINDS)
    solver = PairSolver(found, options, num_threads=args.threads, checkpoint=None, purpose=b"")
    pairs = np.concatenate(list(PairGrid.of(found).blocks()))
    pairs = pairs[np.random.default_rng(args.seed).permutation(len(pairs))[:20_000]]
    times = []
    for bounds in (solver.marginal_bounds, solver.lower_bounds):
        bounds(pairs)  # the first time, graphs are prepared
        times.append(f"{1e6 * measured(lambda bounds=bounds: bounds(pairs))[2] / len(pairs):.2f}")
    return times


def measure(name: str, args: Any) -> tuple[list[str], list[str]]:
    graphs, total = sample(name, args)
    queries = graphs[: args.queries] if args.queries else graphs
    pairs = len(queries) * len(graphs) if args.queries else len(graphs) * (len(graphs) - 1) // 2
    all_pairs = total * (total - 1) // 2
    settings: dict[str, Any] = {"alpha": args.alpha, "num_threads": args.threads, "progress_bar": args.verbose}
    found, wall, cpu = measured(lambda: ot.pairwise(queries, graphs if args.queries else None, **settings))
    distances = found.numpy()
    difference, pot_seconds, value = some_pairs(queries, graphs, distances, args)
    row = [
        name,
        f"{pairs:,}",
        f"{wall:.1f}",
        f"{cpu:.1f}",
        f"{1e6 * cpu / pairs:.1f}",
        f"{cpu / pairs * all_pairs / args.threads:,.0f} s",
        f"{1e6 * pot_seconds:,.0f}",
        f"{pot_seconds * all_pairs / 3600 / args.threads:,.1f} h",
        f"{pot_seconds * pairs / cpu:,.0f}×",
        f"{difference:.1e}",
        f"{value:.4f}",
    ]
    near, near_wall, near_cpu = measured(lambda: ot.nearest(graphs, top=args.top, **settings))
    distances[np.arange(len(queries)), np.arange(len(queries))] = np.inf
    expected = np.argsort(distances, axis=1, kind="stable")[:, : args.top]
    same = (expected == near.indices.numpy()[: len(queries)]).all()
    near_row = [
        name,
        f"{len(graphs):,}",
        f"{near.num_pairs:,}",
        f"{100 * near.num_solved / near.num_pairs:.1f} %",
        f"{near_wall:.1f}",
        f"{near_cpu:.1f}",
        f"{cpu / pairs * near.num_pairs / near_cpu:.1f}×",
        f"{len(queries):,}",
        "yes" if same else "NO",
        *bound_times(graphs, args),
    ]
    return row, near_row


def measure_on_gpu(name: str, args: Any) -> tuple[list[str], list[str]]:
    """All pairs and nearest neighbours. The second of two runs each: the first one compiles the kernels."""
    graphs, _ = sample(name, args)
    graphs = [graph for graph in graphs if len(graph.x) <= (args.max_nodes or len(graph.x))]
    options: dict[str, Any] = {"alpha": args.alpha, "n_starts": args.starts, "num_threads": args.threads}
    settings = {**options, "device": args.device}
    _, first, _ = measured(lambda: ot.pairwise(graphs, **settings))
    distances, wall, _ = measured(lambda: ot.pairwise(graphs, **settings).cpu())
    read, reading, _ = measured(lambda: ragged_set(read_lists(graphs, None, features_only=False), canonical=True))
    pairs = PairGrid.of(read).num_pairs
    chosen = np.random.default_rng(args.seed).integers(len(graphs), size=(args.sample, 2))
    on_cpu = ot.pairwise(graphs, **options, pairs=chosen, device="cpu").numpy()
    found = distances.numpy()[tuple(chosen.T)]
    equal = np.isclose(found, on_cpu, rtol=1e-9, atol=1e-12).mean()
    sizes = np.array([len(graph.x) for graph in graphs])
    row = [
        name,
        f"{len(graphs):,}",
        f"{pairs:,}",
        f"{(sizes > SIZE_CLASSES[-1]).sum()}",
        f"{first:.1f}",
        f"{wall:.1f}",
        f"{reading:.1f}",
        f"{pairs / wall / 1e6:.2f}",
        f"{100 * equal:.1f} %",
        f"{found.mean() / on_cpu.mean():.4f}",
    ]
    ot.nearest(graphs, top=args.top, **settings)
    near, near_wall, near_cpu = measured(lambda: ot.nearest(graphs, top=args.top, **settings))
    expected = distances.fill_diagonal_(torch.inf).sort(dim=1, stable=True)
    same = torch.equal(near.indices.cpu(), expected.indices[:, : args.top])
    same &= torch.equal(near.distances.cpu(), expected.values[:, : args.top])
    near_row = [
        name,
        f"{len(graphs):,}",
        f"{near.num_pairs:,}",
        f"{100 * near.num_solved / near.num_pairs:.1f} %",
        f"{near_wall:.1f}",
        f"{near_cpu:.1f}",
        f"{wall / near_wall:.1f}×",
        "yes" if same else "NO",
    ]
    return row, near_row


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(graphs=400)
    p.add_argument("--alpha", type=float, default=0.5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--starts", type=int, default=1, help="starts per pair (on a GPU)")
    p.add_argument("--top", type=int, default=10, help="nearest neighbours")
    p.add_argument("--sample", type=int, default=100, help="pairs that are solved alone, and by POT")
    p.add_argument("--queries", type=int, help="compare so many graphs with all, instead of all pairs")
    p.add_argument("--verbose", action="store_true", help="show progress bars")
    p.add_argument("--device", default="cpu", help="cuda: on a GPU")
    p.add_argument("--max-nodes", type=int, help="leave larger graphs out (on a GPU)")
    args = p.parse_args()
    if args.device != "cpu":
        header = f"dataset, graphs, pairs, of more than {SIZE_CLASSES[-1]} nodes, first run, seconds, of it reading"
        header = [*header.split(", "), "million pairs/s", "equal to the CPU's", "value/CPU"]
        print(f"{torch.cuda.get_device_name()}, α = {args.alpha}, {args.starts} starts, {args.threads} threads\n")
        rows, near = zip(*(measure_on_gpu(name, args) for name in args.datasets), strict=True)
        table(header, list(rows))
        print(f"\n{args.top} nearest neighbours\n")
        header = "dataset, graphs, pairs, solved, seconds, CPU s, faster than all pairs, same neighbours"
        table(header.split(", "), list(near))
        return
    rows, near = zip(*(measure(name, args) for name in args.datasets), strict=True)
    what = f"{args.graphs} graphs" if args.graphs else "all graphs"
    print(f"{what}, α = {args.alpha}, {args.threads} threads; load of the machine {os.getloadavg()[0]:.1f}\n")
    header = "dataset, pairs, seconds, CPU s, µs/pair, whole dataset, POT µs/pair, POT whole, faster"
    table([*header.split(", "), "difference", "value/POT"], list(rows))
    print(f"\n{args.top} nearest neighbours\n")
    header = "dataset, graphs, pairs, solved, seconds, CPU s, faster than all pairs, compared, same neighbours"
    table([*header.split(", "), "marginal bound, µs", "third bound, µs"], list(near))


if __name__ == "__main__":
    main()

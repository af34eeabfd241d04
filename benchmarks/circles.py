"""SKIP-CIRCLES: Gromov–Wasserstein between renumbered copies (0 if the isomorphism is found) and between classes.

    python benchmarks/circles.py

1,000 renumbered graphs and one renumbered template per class, 10,000 pairs, on one thread. POT solves only the pairs of
a graph with the template of its own class.
"""

from common import permuted, table  # isort: skip  (pins BLAS threads first)

import argparse
import time
import warnings

import numpy as np
import ot
import torch
from torch_geometric.data import Batch
from torch_geometric.utils import to_dense_adj

from tfgw import ot as tot
from tfgw.datasets import skip_circles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--copies", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    rng = np.random.default_rng(args.seed)
    classes = list(skip_circles(permute=False).train)
    matrices = torch.stack([to_dense_adj(permuted(graph, rng).edge_index)[0].double() for graph in classes])
    templates = tot.Templates(torch.ones(len(classes), matrices.shape[1], 1), matrices)
    graphs = [permuted(graph, rng) for _ in range(args.copies) for graph in classes]
    batch = Batch.from_data_list(graphs)
    own = torch.arange(len(classes)).repeat(args.copies)
    is_own = torch.nn.functional.one_hot(own).bool()
    rows = []
    for starts in args.starts:
        began = time.process_time()
        found = tot.fgw(
            tot.GraphBatch(batch.x, batch=batch.batch, edge_index=batch.edge_index),
            templates,
            1.0,
            n_starts=starts,
            plans=None,
            num_threads=1,
        ).distances
        milliseconds = 1e3 * (time.process_time() - began) / found.numel()
        rows.append(
            [f"tfgw, {starts} starts", *_cells(found[is_own]), f"{found[~is_own].min():.4f}", f"{milliseconds:.2f}"]
        )
    warnings.filterwarnings("ignore", module="ot")
    began = time.process_time()
    pot = []
    for graph, k in zip(graphs, own, strict=True):
        C, C2 = to_dense_adj(graph.edge_index)[0].double().numpy(), matrices[k].numpy()
        pot.append(float(ot.gromov.gromov_wasserstein2(C, C2, symmetric=True, max_iter=1000)))
    milliseconds = 1e3 * (time.process_time() - began) / len(pot)
    rows.append(["POT, 1 start", *_cells(torch.tensor(pot)), "-", f"{milliseconds:.2f}"])
    table(["solver", "own class below 1e-9", "largest", "other classes, smallest", "ms of CPU time per pair"], rows)


def _cells(own: torch.Tensor) -> list[str]:
    return [f"{int((own < 1e-9).sum())} of {len(own)}", f"{own.max():.2g}"]


if __name__ == "__main__":
    main()

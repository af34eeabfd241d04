"""Mean FGW value over random node orders, compared with POT's fused_gromov_wasserstein2 (max_iter 1000), one start
each.

    python benchmarks/quality.py --data-dir FOLDER

The local minimum of a single pair depends on chance; means over many pairs and node orders do not.
"""

from common import make_case, parser, permuted, table  # isort: skip  (pins BLAS threads first)

import numpy as np
import ot
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_dense_adj

from tfgw import ot as tot


def pot_value(graph: Data, templates: tot.Templates, k: int, alpha: float) -> float:
    """POT's value of one pair."""
    C = to_dense_adj(graph.edge_index, max_num_nodes=graph.num_nodes)[0].double().numpy()
    M = torch.cdist(graph.x, templates.features[k]).square().numpy()
    C2 = templates.structure[k].numpy()
    p, q = np.full(len(C), 1 / len(C)), np.full(len(C2), 1 / len(C2))
    return float(ot.gromov.fused_gromov_wasserstein2(M, C, C2, p, q, alpha=alpha, max_iter=1000, symmetric=True))


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(graphs=48)
    p.add_argument("--orders", type=int, default=8, help="number of random node orders per graph")
    p.add_argument("--alpha", type=float, default=0.5)
    args = p.parse_args()
    rows = []
    for name in args.datasets:
        case = make_case(name, args)
        rng = np.random.default_rng(args.seed + 1)
        ours, pot = [], []
        for _ in range(args.orders):
            graphs = [permuted(g, rng) for g in case.graphs]
            batch = Batch.from_data_list(graphs)
            result = tot.fgw(
                tot.GraphBatch(batch.x, batch=batch.batch, edge_index=batch.edge_index),
                case.templates,
                args.alpha,
                plans=None,
            )
            ours.append(result.distances.numpy())
            pot.append([[pot_value(g, case.templates, k, args.alpha) for k in range(args.templates)] for g in graphs])
        ours, pot = np.array(ours), np.array(pot)
        difference = (ours - pot).mean(-1) / pot.mean()
        rows.append(
            [
                name,
                f"{ours.mean():.6f}",
                f"{pot.mean():.6f}",
                f"{100 * difference.mean():+.3f} %",
                f"{100 * difference.std() / np.sqrt(difference.size):.3f} %",
                f"{100 * (ours < pot - 1e-09).mean():.0f} / {100 * (ours > pot + 1e-09).mean():.0f} %",
            ]
        )
    print(f"{args.graphs} graphs × {args.templates} templates × {args.orders} node orders, α = {args.alpha}\n")
    table(
        ["dataset", "ours, mean", "POT, mean", "difference", "its standard error", "pairs lower / higher"],
        rows,
    )


if __name__ == "__main__":
    main()

"""Quality at equal cost: the best of as many starts as fit into the time of one start of POT.

    python benchmarks/equal_cost.py --data-dir FOLDER

POT's fused_gromov_wasserstein2 (max_iter 1000) solves every pair once, from hh̄ᵀ. tfgw solves all pairs with as many
starts as fit into the same CPU time, on one thread. If POT has the best known value (from --thorough starts of tfgw),
it cannot be improved; the other pairs can.
"""

from common import Case, make_case, parser, table  # isort: skip  (pins BLAS threads first)

import time
import warnings

import numpy as np
import torch
from quality import pot_value

from tfgw import ot as tot

SAME = 1e-9


def pot_values(case: Case, alpha: float) -> tuple[np.ndarray, float]:
    began = time.process_time()
    templates = range(len(case.templates.features))
    values = [[pot_value(graph, case.templates, k, alpha) for k in templates] for graph in case.graphs]
    return np.array(values), time.process_time() - began


def our_values(case: Case, alpha: float, starts: int) -> tuple[np.ndarray, float]:
    graphs = tot.GraphBatch(case.batch.x, batch=case.batch.batch, edge_index=case.batch.edge_index)
    began = time.process_time()
    found = tot.fgw(graphs, case.templates, alpha, n_starts=starts, plans=None, num_threads=1)
    return found.distances.numpy(), time.process_time() - began


def best_within(seconds: float, case: Case, alpha: float, most: int) -> tuple[np.ndarray, float, int]:
    """Return the values of the largest number of starts that fits into the given time."""
    starts = 16
    values, used = our_values(case, alpha, starts)
    while True:
        wanted = min(most, int(starts * 0.97 * seconds / used))
        if used <= seconds and wanted <= 1.05 * starts:
            return values, used, starts
        starts = max(1, wanted)
        values, used = our_values(case, alpha, starts)


def main() -> None:
    p = parser(__doc__)
    p.add_argument("--alpha", type=float, default=0.5)
    p.add_argument("--most", type=int, default=1000, help="maximum number of starts")
    p.add_argument("--thorough", type=int, default=3000, help="number of starts for the best known value")
    args = p.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="ot")
    rows = []
    for name in args.datasets:
        case = make_case(name, args)
        pot, pot_seconds = pot_values(case, args.alpha)
        ours, seconds, starts = best_within(pot_seconds, case, args.alpha, args.most)
        best = np.minimum(np.minimum(ours, pot), our_values(case, args.alpha, args.thorough)[0])
        excess = (ours - pot) / np.maximum(np.abs(pot), 1e-12)
        improvable = pot - best > SAME * np.abs(pot)
        below = excess < -SAME
        shares = [below.mean(), improvable.mean(), below[improvable].mean(), (excess <= SAME).mean()]
        worst = [f"{int((excess > 1e-3).sum())} of {excess.size}", f"{100 * max(0.0, excess.max()):.2f} %"]
        cells = [str(starts), f"{seconds / pot_seconds:.2f}", *(f"{100 * share:.1f} %" for share in shares), *worst]
        rows.append([name, *cells, *(f"{100 * (v.mean() / pot.mean() - 1):+.2f} %" for v in (ours, best))])
        print(rows[-1], flush=True)
    print(f"\n{args.graphs} graphs × {args.templates} templates, seed {args.seed}, α = {args.alpha}\n")
    header = ["dataset", "starts", "time / POT's", "below", "can be below", "below where it can", "not above"]
    header += ["above by > 0.1 %", "worst", "mean value", "best known"]
    table(header, rows)


if __name__ == "__main__":
    main()

"""Forward and backward pass of the whole layer, compared with POT's ot.gnn.TFGWPooling on the same graphs and
templates.

python benchmarks/layer.py --data-dir FOLDER
"""

from common import Case, make_case, parser, seconds, table  # isort: skip  (pins BLAS threads first)

import statistics
from collections.abc import Callable

import numpy as np
import torch
from ot.gnn import TFGWPooling as PotPooling

from tfgw.nn import TFGWPooling


def ours(case: Case, threads: int) -> TFGWPooling:
    count, nodes, features = case.templates.features.shape
    layer = TFGWPooling(features, count, nodes, num_threads=threads)
    layer.set_templates(case.templates.structure, case.templates.features)
    return layer


def pots(case: Case) -> PotPooling:
    """POT's layer with the same templates; it works in single precision throughout."""
    count, nodes, features = case.templates.features.shape
    layer = PotPooling(features, count, nodes)
    layer.tplt_adjacencies.data = case.templates.structure.float()
    layer.tplt_features.data = case.templates.features.float()
    layer.q0.data = torch.zeros(count, nodes)
    return layer.float()


def step(layer: torch.nn.Module, x: torch.Tensor, case: Case) -> None:
    x = x.detach().requires_grad_()
    layer(x, case.batch.edge_index, case.batch.batch).sum().backward()


@torch.no_grad()
def forward(layer: torch.nn.Module, x: torch.Tensor, case: Case) -> None:
    layer(x, case.batch.edge_index, case.batch.batch)


def in_single_precision(run: Callable[..., object], *arguments: object) -> float:
    """POT's layer creates tensors of the default type on its way."""
    torch.set_default_dtype(torch.float32)
    try:
        return seconds(run, *arguments)
    finally:
        torch.set_default_dtype(torch.float64)


def main() -> None:
    p = parser(__doc__)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--repeats", type=int, default=15, help="number of timed runs of our layer")
    p.add_argument("--pot-repeats", type=int, default=3, help="number of timed runs of POT's layer")
    args = p.parse_args()
    rows, ratios = [], []
    for name in args.datasets:
        case = make_case(name, args)
        pairs = case.batch.num_graphs * len(case.templates.features)
        single, several, peer = ours(case, 1), ours(case, args.threads), pots(case)
        x = case.batch.x
        step(several, x, case)
        only_forward, one, many, pot = [], [], [], []
        for r in range(args.repeats):
            only_forward.append(seconds(forward, several, x, case))
            many.append(seconds(step, several, x, case))
            one.append(seconds(step, single, x, case))
            if r < args.pot_repeats:
                pot.append(in_single_precision(step, peer, x.float(), case))
        per_pair = [1e6 * statistics.median(t) / pairs for t in (only_forward, many, one, pot)]
        ratios.append((per_pair[3] / per_pair[1], per_pair[3] / per_pair[2]))
        rows.append(
            [
                name,
                f"{case.batch.num_nodes / case.batch.num_graphs:.1f}",
                str(case.templates.features.shape[1]),
            ]
            + [f"{t:,.1f}" for t in per_pair]
            + [f"{ratios[-1][0]:.0f}×", f"{ratios[-1][1]:.0f}×"]
        )
    means = np.exp(np.log(ratios).mean(0))
    rows.append(["geometric mean", *[""] * 6, f"{means[0]:.0f}×", f"{means[1]:.0f}×"])
    print(f"microseconds per (graph, template) pair; {args.graphs} graphs × {args.templates} templates; t = threads\n")
    t = args.threads
    header = ["dataset", "mean nodes", "template nodes", f"forward, {t} t", f"forward + backward, {t} t"]
    header += ["forward + backward, 1 t", "POT forward + backward", f"faster, {t} t", "faster, 1 t"]
    table(header, rows)


if __name__ == "__main__":
    main()

"""Overhead of a call of the layer: one graph per call, compared with the time per graph in a large batch.

python benchmarks/fixed_cost.py --data-dir FOLDER
"""

from common import make_case, parser, seconds, table  # isort: skip  (pins BLAS threads first)

import statistics
from collections.abc import Callable

import torch
from layer import ours
from torch_geometric.data import Batch

from tfgw.nn import TFGWPooling


def step(layer: TFGWPooling, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor | None) -> None:
    layer(x.detach().requires_grad_(), edge_index, batch).sum().backward()


@torch.no_grad()
def forward(layer: TFGWPooling, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor | None) -> None:
    layer(x, edge_index, batch)


def timed(run: Callable[..., None], layer: TFGWPooling, graphs: Batch) -> float:
    """Return the time of a call without previous gradients, excluding the time to clear them."""
    layer.zero_grad()
    return seconds(run, layer, graphs.x, graphs.edge_index, graphs.batch)


def main() -> None:
    p = parser(__doc__)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--repeats", type=int, default=10, help="number of timed calls for each graph and for the batch")
    p.set_defaults(datasets=["PTC_MR"], graphs=256)
    args = p.parse_args()
    rows = []
    for name in args.datasets:
        case = make_case(name, args)
        layer, one_thread = ours(case, args.threads), ours(case, 1)
        singles = [Batch.from_data_list([graph]) for graph in case.graphs]
        times = []
        for run in (forward, step):
            for net in (layer, one_thread):
                each = [statistics.median(timed(run, net, graph) for _ in range(args.repeats)) for graph in singles]
                times.append(statistics.median(each))
            everything = [timed(run, layer, case.batch) for _ in range(args.repeats)]
            times.append(statistics.median(everything) / len(singles))
        rows.append([name, *(f"{1e3 * t:.3f}" for t in times)])
    print(f"milliseconds per graph, {args.templates} templates; medians; t = threads\n")
    t = args.threads
    kinds = [f"one graph, {t} t", "one graph, 1 t", f"in a batch of {args.graphs}, {t} t"]
    header = ["dataset", *(f"{what}, {kind}" for what in ("forward", "forward + backward") for kind in kinds)]
    table(header, rows)


if __name__ == "__main__":
    main()

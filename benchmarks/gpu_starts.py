"""Several starts on a CUDA GPU: agreement with the CPU core, ties, time against one start, kernels, SKIP-CIRCLES.

python benchmarks/gpu_starts.py --data-dir FOLDER
python benchmarks/gpu_starts.py --data-dir FOLDER --parts agreement --starts 4 --graphs 20
compute-sanitizer --tool racecheck python benchmarks/gpu_starts.py --data-dir FOLDER --parts agreement --graphs 3
"""

from common import Case, parser, permuted, table  # isort: skip  (pins BLAS threads first)

import argparse
import os
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from gpu import case_of, forward, forward_backward, given_to, layer_of, timing, work
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.utils import to_dense_adj

from tfgw import ot as tot
from tfgw.datasets import skip_circles

PARTS = ("agreement", "ties", "time", "kernels", "circles")
JITTER = 0.1


class Kinds(NamedTuple):
    names: tuple[str, ...]
    given: bool = False
    """Whether the first start is at a random plan."""

    def __str__(self) -> str:
        return " + ".join((*(("given",) if self.given else ()), *self.names))


KINDS = (
    Kinds(("uniform",)),
    Kinds(("anchored",)),
    Kinds(("uniform", "perturbed")),
    Kinds(("anchored", "perturbed")),
    Kinds(("perturbed",), given=True),
    Kinds(("uniform",), given=True),
    Kinds(tot.START_KINDS),
)


def main() -> None:
    p = parser(__doc__)
    p.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    p.add_argument("--starts", type=int, nargs="+", default=[4, 8, 16])
    p.add_argument("--repeats", type=int, default=30, help="timed calls; the median counts")
    p.set_defaults(graphs=210)
    args = p.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("gpu_starts.py: no CUDA GPU")
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(os.cpu_count() or 1)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    for part in args.parts:
        globals()[part](args)


class Solved(NamedTuple):
    distances: Tensor
    gradients: list[Tensor]


def solve(case: Case, device: str, starts: int, kinds: Kinds) -> Solved:
    """Distances, and the gradients of a weighted sum of them."""
    batch, templates = case.batch, case.templates
    assert templates.structure is not None
    count, nodes, _ = templates.features.shape
    weights = torch.full((count, nodes), 1 / nodes)
    alpha = torch.linspace(0.3, 0.7, count)
    given = (batch.x, templates.features, templates.structure, weights, alpha)
    x, features, structure, h, a = (t.detach().to(device).requires_grad_() for t in given)
    graphs = tot.GraphBatch(x, batch=batch.batch.to(device), edge_index=batch.edge_index.to(device))
    plans = torch.rand(len(batch.x), count, nodes, generator=torch.Generator().manual_seed(1)).to(device)
    found = tot.fgw(
        graphs,
        tot.Templates(features, structure, h),
        a,
        n_starts=starts,
        start_kinds=kinds.names,
        initial_plans=plans if kinds.given else None,
        plans=None,
    ).distances
    up = torch.randn(found.shape, generator=torch.Generator().manual_seed(0)).to(device)
    gradients = torch.autograd.grad((found * up).sum(), [x, features, structure, h, a])
    return Solved(found.detach().cpu(), [g.cpu() for g in gradients])


def settings(args: argparse.Namespace) -> Iterator[tuple[Kinds, int]]:
    for kinds in KINDS:
        for starts in args.starts:
            yield kinds, starts


def agreement(args: argparse.Namespace) -> None:
    cases = [case_of(name, args, args.graphs, 8, jitter=JITTER) for name in args.datasets]
    rows = []
    for kinds, starts in settings(args):
        values, gradients, beyond, pairs = 0.0, 0.0, [], 0
        for case in cases:
            cpu, gpu = (solve(case, device, starts, kinds) for device in ("cpu", "cuda"))
            relative = (gpu.distances - cpu.distances).abs() / cpu.distances.abs()
            values = max(values, float(relative.max()))
            found = [
                float((g - c).abs().max() / c.abs().max()) for g, c in zip(gpu.gradients, cpu.gradients, strict=True)
            ]
            gradients = max(gradients, *found)
            pairs += relative.numel()
            if number := int((relative > 1e-10).sum()):
                beyond.append(f"{case.name}: {number}")
        rows.append(
            [str(kinds), str(starts), str(pairs), f"{values:.1e}", ", ".join(beyond) or "0", f"{gradients:.1e}"]
        )
    print(f"agreement with the CPU core, features jittered by {JITTER}\n")
    header = ["kinds of starts", "starts", "pairs", "largest relative difference", "beyond 1e-10"]
    table([*header, "of gradients, to the largest entry"], rows)
    print()


def ties(args: argparse.Namespace) -> None:
    """Features as they are: pairs may end in other minima than on the CPU, but not in worse ones on average."""
    cases = [case_of(name, args, args.graphs, 8) for name in args.datasets]
    rows = []
    for kinds, starts in settings(args):
        found = []
        for case in cases:
            cpu, gpu = (solve(case, device, starts, kinds).distances for device in ("cpu", "cuda"))
            found.append(float(100 * (gpu.mean() / cpu.mean() - 1)))
        rows.append([str(kinds), str(starts), *(f"{percent:+.4f}" for percent in (*found, float(np.mean(found))))])
    print("features as they are: mean distance on the GPU above that on the CPU, in percent\n")
    table(["kinds of starts", "starts", *args.datasets, "mean"], rows)
    print()


def time(args: argparse.Namespace) -> None:
    """Of a whole layer, 128 graphs × 8 templates."""
    rows = []
    for name in args.datasets:
        case = case_of(name, args, 128, 8)
        module, given = layer_of(case, "cuda"), given_to("cuda", case)
        up = torch.ones(128, 8, device="cuda")
        times: dict[tuple[int, bool], float] = {}
        for starts in (1, *args.starts):
            module.n_starts = starts
            for learns in (False, True):
                call = partial(forward_backward, module, given, up) if learns else partial(forward, module, given)
                with torch.set_grad_enabled(learns):
                    times[starts, learns] = timing(call, args.repeats).whole
        cells = [f"{1e6 * times[1, learns]:,.0f}" for learns in (False, True)]
        several = [(starts, learns) for starts in args.starts for learns in (False, True)]
        cells += [f"{1e6 * times[key]:,.0f} ({times[key] / times[1, key[1]]:.1f}×)" for key in several]
        rows.append([name, *cells])
    print("whole layer, 128 graphs × 8 templates, microseconds: forward, and forward + backward\n")
    table(["dataset", *(h for s in (1, *args.starts) for h in (f"{s} start(s)", "with backward"))], rows)
    print()


def kernels(args: argparse.Namespace) -> None:
    """Of the forward pass of a layer, 128 graphs × 8 templates: the median of three calls by busy time."""
    rows = []
    for name in args.datasets:
        case = case_of(name, args, 128, 8)
        module, given = layer_of(case, "cuda"), given_to("cuda", case)
        call = partial(forward, module, given)
        for starts in (1, *args.starts):
            module.n_starts = starts
            with torch.no_grad():
                whole = timing(call, args.repeats).whole
                middle = sorted((work(call) for _ in range(3)), key=lambda found: found.busy)[1]
            each = ", ".join(f"{kernel} {1e6 * length:.0f}" for kernel, length in middle.by_kernel.items())
            rows.append([name, str(starts), f"{1e6 * whole:,.0f}", each])
    print("forward pass of a layer, 128 graphs × 8 templates, microseconds\n")
    table(["dataset", "starts", "whole", "by kernel"], rows)
    print()


def circles(args: argparse.Namespace) -> None:
    """Renumbered graphs of SKIP-CIRCLES, 100 of each class, and one renumbered template per class."""
    rng = np.random.default_rng(args.seed)
    classes = list(skip_circles(permute=False).train)
    matrices = torch.stack([to_dense_adj(permuted(graph, rng).edge_index)[0].double() for graph in classes])
    batch = Batch.from_data_list([permuted(graph, rng) for _ in range(100) for graph in classes]).to("cuda")
    graphs = tot.GraphBatch(
        batch.x.double(), batch=batch.batch, edge_index=batch.edge_index, batch_size=batch.num_graphs
    )
    templates = tot.Templates(torch.ones(len(classes), matrices.shape[1], 1).cuda(), matrices.cuda())
    is_own = torch.nn.functional.one_hot(torch.arange(len(classes)).repeat(100)).bool()
    rows = []
    for starts in args.starts:
        call = partial(tot.fgw, graphs, templates, 1.0, n_starts=starts, plans=None)
        found = call().distances.cpu()
        own, others = found[is_own], found[~is_own]
        microseconds = 1e6 * timing(call, 10).whole / found.numel()
        cells = [f"{int((own < 1e-9).sum())} of {len(own)}", f"{own.max():.2g}", f"{others.min():.4f}"]
        rows.append([str(starts), *cells, f"{microseconds:.2f}"])
    print("SKIP-CIRCLES, 1,000 renumbered graphs × 10 templates\n")
    table(["starts", "own class below 1e-9", "largest", "other classes, smallest", "microseconds per pair"], rows)
    print()


if __name__ == "__main__":
    main()

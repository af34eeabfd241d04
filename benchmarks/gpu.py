"""The solver on a CUDA GPU: agreement with the CPU core, determinism, time of a layer, throughput, POT, training.

python benchmarks/gpu.py --data-dir FOLDER
python benchmarks/gpu.py --data-dir FOLDER --parts layer throughput
python benchmarks/gpu.py --data-dir FOLDER --parts layer --one-thread
python benchmarks/gpu.py --data-dir FOLDER --parts layer --jitter 0.1
python benchmarks/gpu.py --parts wide
python benchmarks/gpu.py --data-dir FOLDER --parts training --epochs MUTAG=500 COLLAB=1
compute-sanitizer --tool racecheck python benchmarks/gpu.py --data-dir FOLDER --parts agreement --graphs 5
"""

from common import Case, parser, read, table  # isort: skip  (pins BLAS threads first)

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from torch_geometric.data import Batch

from tfgw import ot as tot
from tfgw.datasets import GraphDataset
from tfgw.nn import TFGWConfig, TFGWModel, TFGWPooling, sample_templates
from tfgw.train import TrainConfig, fit

PARTS = ("agreement", "determinism", "layer", "throughput", "wide", "pot_batch", "training")
EPOCHS = {"MUTAG": 500, "NCI1": 500, "COLLAB": 1}
TEMPLATES = {"COLLAB": 12}  # 8 elsewhere
SHORT_RUNS = {"MUTAG": 50, "NCI1": 5}  # epochs; 1 elsewhere


def main() -> None:
    p = parser(__doc__)
    p.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    p.add_argument("--repeats", type=int, default=50, help="timed calls of a layer; the median counts")
    p.set_defaults(graphs=210)  # of each dataset, to compare with the CPU core
    p.add_argument(
        "--epochs", nargs="+", type=epochs_of, metavar="NAME=N", default=list(EPOCHS.items()), help="to train for"
    )
    p.add_argument("--one-thread", action="store_true", help="backward passes in the thread that asks for them")
    p.add_argument(
        "--jitter", type=float, default=0.0, help="noise of the features in `layer`: no ties, as in training"
    )
    args = p.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("gpu.py: no CUDA GPU")
    torch.autograd.set_multithreading_enabled(not args.one_thread)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    for part in args.parts:
        globals()[part](args)


def epochs_of(argument: str) -> tuple[str, int]:
    name, _, number = argument.partition("=")
    return name, int(number)


def case_of(name: str, args: argparse.Namespace, graphs: int, templates: int, jitter: float = 0.0) -> Case:
    """Random graphs, repeated where there are too few, and templates of the median size drawn from the data."""
    dataset = read(name, args.data_dir)
    rng = np.random.default_rng(args.seed)
    chosen = [dataset[int(i)] for i in rng.choice(len(dataset), graphs, replace=graphs > len(dataset))]
    nodes = int(np.median([g.num_nodes for g in dataset]))
    drawn = sample_templates(list(dataset), templates, nodes, seed=args.seed)
    batch = Batch.from_data_list(chosen)
    if jitter:  # no two nodes alike: no ties
        generator = torch.Generator().manual_seed(args.seed)
        batch.x = batch.x + jitter * torch.randn(batch.x.shape, generator=generator)
        noise = jitter * torch.randn(drawn.features.shape, generator=generator)
        drawn = tot.Templates(drawn.features + noise, drawn.structure, drawn.weights)
    return Case(name, chosen, batch, drawn)


def layer_of(case: Case, device: str) -> TFGWPooling:
    count, nodes, features = case.templates.features.shape
    layer = TFGWPooling(features, count, nodes)
    layer.set_templates(case.templates.structure, case.templates.features)
    return layer.to(device)


class Given(NamedTuple):
    """What a layer takes, for PyG looks it up by name each time."""

    x: torch.Tensor
    edge_index: torch.Tensor
    batch: torch.Tensor
    batch_size: int


def given_to(device: str, case: Case) -> Given:
    batch = case.batch.clone().to(device)
    return Given(batch.x, batch.edge_index, batch.batch, batch.num_graphs)


def forward_backward(layer: TFGWPooling, given: Given, up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Distances and x, with its gradient; those of the templates are with the layer."""
    layer.zero_grad()
    x = given.x.detach().requires_grad_()
    distances = layer(x, given.edge_index, given.batch, batch_size=given.batch_size)
    distances.backward(up)
    return distances, x


def step(layer: TFGWPooling, given: Given, up: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Distances, and gradients by name."""
    distances, x = forward_backward(layer, given, up)
    return distances.detach(), {"x": x.grad, **{n: p.grad for n, p in layer.named_parameters() if p.grad is not None}}


def forward(layer: TFGWPooling, given: Given) -> torch.Tensor:
    return layer(given.x, given.edge_index, given.batch, batch_size=given.batch_size)


class Timing(NamedTuple):
    """Median wall-clock seconds of a call."""

    host: float
    """Until it returns: it waits for the checks of its input, not for the solve."""
    whole: float
    """Until its last kernel has ended."""


def timing(run: Callable[[], object], repeats: int) -> Timing:
    for _ in range(5):
        run()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        started = time.perf_counter()
        run()
        returned = time.perf_counter()
        torch.cuda.synchronize()
        times.append((returned - started, time.perf_counter() - started))
    return Timing(*(statistics.median(column) for column in zip(*times, strict=True)))


class Work(NamedTuple):
    """What the GPU does during a call, in seconds."""

    busy: float
    """Time in which at least one kernel or copy runs."""
    by_kernel: dict[str, float]


def work(run: Callable[[], object]) -> Work:
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        run()
        torch.cuda.synchronize()
    on_gpu = [event for event in profiler.events() if event.device_type == DeviceType.CUDA]
    events = [event for event in on_gpu if not event.is_user_annotation]  # named ranges, idle time included
    by_kernel: dict[str, float] = {}
    for event in events:
        length = 1e-6 * (event.time_range.end - event.time_range.start)
        by_kernel[event.name] = by_kernel.get(event.name, 0.0) + length
    return Work(1e-6 * covered((event.time_range.start, event.time_range.end) for event in events), by_kernel)


def covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Length of the union."""
    total, end = 0.0, float("-inf")
    for first, last in sorted(intervals):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total


def agreement(args: argparse.Namespace) -> None:
    rows, pairs = [], 0
    for name in args.datasets:
        case = case_of(name, args, args.graphs, 8, jitter=0.1)
        up = torch.randn(case.batch.num_graphs, 8, generator=torch.Generator().manual_seed(0))
        cpu, cpu_grads = step(layer_of(case, "cpu"), given_to("cpu", case), up)
        gpu, gpu_grads = step(layer_of(case, "cuda"), given_to("cuda", case), up.cuda())
        relative = ((gpu.cpu() - cpu).abs() / cpu.abs()).flatten()
        worst = {n: float((gpu_grads[n].cpu() - g).abs().max() / g.abs().max()) for n, g in cpu_grads.items()}
        pairs += cpu.numel()
        beyond = int((relative > 1e-10).sum())
        rows.append([name, str(cpu.numel()), f"{relative.max():.1e}", str(beyond), f"{max(worst.values()):.1e}"])
    print(f"agreement with the CPU core, {pairs:,} pairs, features jittered by 0.1\n")
    table(
        ["dataset", "pairs", "largest relative difference", "beyond 1e-10", "of gradients, to the largest entry"], rows
    )
    print()


def determinism(args: argparse.Namespace) -> None:
    for name in args.datasets:
        case = case_of(name, args, 128, 8)
        layer, given = layer_of(case, "cuda"), given_to("cuda", case)
        up = torch.ones(128, 8, device="cuda")
        first, first_grads = step(layer, given, up)
        for _ in range(5):
            again, grads = step(layer, given, up)
            assert torch.equal(first, again), name
            assert all(torch.equal(first_grads[n], g) for n, g in grads.items()), name
    print("determinism: six runs with equal bits on each dataset\n")


def layer(args: argparse.Namespace) -> None:
    rows = []
    for name in args.datasets:
        case = case_of(name, args, 128, 8, jitter=args.jitter)
        module, given = layer_of(case, "cuda"), given_to("cuda", case)
        up = torch.ones(128, 8, device="cuda")
        times, works = [], []
        for call in (partial(forward, module, given), partial(forward_backward, module, given, up)):
            with torch.set_grad_enabled(call.func is forward_backward):
                times.append(timing(call, args.repeats))
                works.append(work(call))
        largest = int(torch.bincount(case.batch.batch).max())
        columns = [figure for t, w in zip(times, works, strict=True) for figure in (t.whole, t.host, w.busy)]
        columns.append(sum(length for name, length in works[0].by_kernel.items() if name.startswith("tfgw_solve")))
        rows.append([name, str(case.templates.features.shape[1]), str(largest), *(f"{1e6 * t:,.0f}" for t in columns)])
    noise = f", features jittered by {args.jitter}" if args.jitter else ""
    print(f"whole layer, 128 graphs × 8 templates, float64{noise}, microseconds\n")
    header = ["dataset", "template nodes", "largest graph", "forward", "host, until return", "GPU busy"]
    table([*header, "forward + backward", "host", "GPU busy", "solve kernel"], rows)
    print()


def throughput(args: argparse.Namespace) -> None:
    rows = []
    for name in args.datasets:
        case = case_of(name, args, 4096, 16)
        module = layer_of(case, "cuda")
        with torch.no_grad():
            t = timing(partial(forward, module, given_to("cuda", case)), 10).whole
        rows.append([name, f"{1e3 * t:.2f}", f"{4096 * 16 / t / 1e6:.1f}", f"{1e9 * t / 4096 / 16:.0f}"])
    print("throughput, 4096 graphs × 16 templates, float64, forward\n")
    table(["dataset", "milliseconds", "million pairs per second", "nanoseconds per pair"], rows)
    print()


def wide(args: argparse.Namespace) -> None:
    """Templates of each larger size class, and graphs of about that size, against the CPU core on all its threads."""
    rows = []
    for nodes, graphs in ((120, 64), (200, 64), (250, 64), (400, 32), (500, 32)):
        given, templates = wide_case(nodes, graphs, args.seed)
        on_cpu = partial(tot.fgw, given, templates, 0.5, plans=None, num_threads=os.cpu_count())
        started = time.perf_counter()
        cpu = on_cpu().distances
        cpu_seconds = time.perf_counter() - started
        there = tot.GraphBatch(given.x.cuda(), batch=given.batch.cuda(), edge_index=given.edge_index.cuda())
        others = tot.Templates(templates.features.cuda(), templates.structure.cuda())
        on_gpu = partial(tot.fgw, there, others, 0.5, plans=None)
        difference = float(((on_gpu().distances.cpu() - cpu).abs() / cpu).max())
        gpu_seconds = timing(on_gpu, 3).whole
        times = [f"{1e6 * t / cpu.numel():,.0f}" for t in (gpu_seconds, cpu_seconds)]
        rows.append([str(nodes), f"{graphs} × 8", *times, f"{cpu_seconds / gpu_seconds:.1f}", f"{difference:.1e}"])
    print(f"large templates, float64; the CPU core has {os.cpu_count()} threads\n")
    header = ["nodes of templates and graphs", "pairs", "microseconds per pair", "on the CPU", "times faster"]
    table([*header, "largest relative difference"], rows)
    print()


def wide_case(nodes: int, graphs: int, seed: int) -> tuple[tot.GraphBatch, tot.Templates]:
    """Random sparse graphs of 0.8 to 1.2 times this many nodes, and templates with this many, without ties."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(int(0.8 * nodes), int(1.2 * nodes) + 1, (graphs,), generator=generator).tolist()
    edges, first = [], 0
    for n in sizes:
        linked = (torch.rand(n, n, generator=generator) < 4 / n).triu(1)
        edges.append((linked | linked.T).nonzero().T + first)
        first += n
    x = torch.randn(first, 4, generator=generator, dtype=torch.float64)
    batch = torch.repeat_interleave(torch.tensor(sizes))
    structure = (torch.rand(8, nodes, nodes, generator=generator) < 4 / nodes).triu(1).double()
    features = torch.randn(8, nodes, 4, generator=generator, dtype=torch.float64)
    graph_batch = tot.GraphBatch(x, batch=batch, edge_index=torch.cat(edges, 1))
    return graph_batch, tot.Templates(features, structure + structure.mT)


def pot_batch(args: argparse.Namespace) -> None:
    """POT's entropic solver on the same pairs; its value is at its plan, whether that meets the marginals or not."""
    try:
        from pot_batch import ALPHA, padded_pairs, settings_that_meet, solve
    except ImportError as error:
        print(f"POT's ot.batch: left out ({error})\n")
        return
    rows = []
    for name in args.datasets:
        case = case_of(name, args, 128, 8)
        batch, pairs = case.batch.clone().to("cuda"), padded_pairs(case, "cuda")
        graphs = tot.GraphBatch(batch.x, batch=batch.batch, batch_size=128, edge_index=batch.edge_index)
        templates = tot.Templates(*(t if t is None else t.cuda() for t in vars(case.templates).values()))
        ours = partial(tot.fgw, graphs, templates, ALPHA, plans=None)
        values = ours().distances
        rows.append([name, "ours", f"{1e6 * timing(ours, args.repeats).whole / values.numel():,.2f}", "", "", "exact"])
        solve(pairs, 8, {})  # the first call of everything
        for label, settings in (("POT, default", {}), ("POT, marginals", settings_that_meet(1e-3, pairs))):
            torch.cuda.synchronize()
            started = time.perf_counter()
            found = solve(pairs, 8, settings)
            torch.cuda.synchronize()
            per_pair = 1e6 * (time.perf_counter() - started) / values.numel()
            more = 100 * (found.values - values) / values.mean()
            figures = [f"{per_pair:,.2f}", f"{more.mean():+.1f} %", f"{more.max():+.0f} %"]
            rows.append([name, label, *figures, f"{found.marginal_error:.0e}"])
    print(f"POT's ot.batch.solve_gromov_batch on the same GPU, 128 graphs × 8 templates, float64, α = {ALPHA}\n")
    header = ["dataset", "solver", "microseconds per pair", "value above ours, mean", "worst pair, of ours' mean"]
    table([*header, "mass that misses the marginals, worst pair"], rows)
    print()


def train_for(epochs: int, model: TFGWModel, train: GraphDataset, validation: GraphDataset) -> None:
    settings = TrainConfig(epochs=epochs, batch_size=128, accelerator="cuda", precision="float64")
    fit(model, train, validation, config=settings)


def seconds_of(epochs: int, model: TFGWModel, train: GraphDataset, validation: GraphDataset) -> float:
    torch.cuda.synchronize()
    started = time.perf_counter()
    train_for(epochs, model, train, validation)
    torch.cuda.synchronize()
    return time.perf_counter() - started


def training(args: argparse.Namespace) -> None:
    """As in the paper: batches of 128, Adam, projections, validation every 5 epochs."""
    rows = []
    for name, epochs in args.epochs:
        dataset = read(name, args.data_dir)
        order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0))
        held_out = len(dataset) // 10
        train, validation = dataset[order[held_out:]], dataset[order[:held_out]]
        nodes = int(np.median([g.num_nodes for g in dataset]))
        templates = TEMPLATES.get(name, 8)
        config = TFGWConfig(
            in_channels=dataset.num_node_features,
            out_channels=dataset.num_classes,
            num_templates=templates,
            template_nodes=nodes,
            num_layers=2,
            width=16,
        )
        model = TFGWModel(config).init_templates(train)
        seconds_of(1, model, train[:256], validation)
        seconds = seconds_of(epochs, model, train, validation)
        # A run does more than epochs: of what is per epoch, another run does so many times more. The profiler slows the
        # host down, but not the kernels: their time, to that of epochs without it.
        few = SHORT_RUNS.get(name, 1)
        short, long = ((number, model, train, validation) for number in (few, 2 * few))
        per_epoch = (seconds_of(*long) - seconds_of(*short)) / few
        busy = (work(partial(train_for, *long)).busy - work(partial(train_for, *short)).busy) / few / per_epoch
        figures = [f"{seconds:.1f}", f"{per_epoch:.4f}", f"{100 * busy:.0f} %"]
        rows.append([name, f"{templates} × {nodes}", str(epochs), *figures])
    print("training on the GPU, float64\n")
    header = ["dataset", "K × template nodes", "epochs", "seconds", "seconds per further epoch", "GPU busy meanwhile"]
    table(header, rows)
    print()


if __name__ == "__main__":
    main()

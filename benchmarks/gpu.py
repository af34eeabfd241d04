"""The solver on a CUDA GPU: agreement with the CPU core, determinism, time of a layer, throughput, training.

python benchmarks/gpu.py --data-dir FOLDER
python benchmarks/gpu.py --data-dir FOLDER --parts layer throughput
"""

from common import Case, parser, read, table  # isort: skip  (pins BLAS threads first)

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch_geometric.data import Batch

from tfgw import ot as tot
from tfgw.nn import TFGWConfig, TFGWModel, TFGWPooling, sample_templates
from tfgw.train import TrainConfig, fit

PARTS = ("agreement", "determinism", "layer", "throughput", "training")


def main() -> None:
    p = parser(__doc__)
    p.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    p.add_argument("--repeats", type=int, default=50)
    args = p.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("gpu.py: no CUDA GPU")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    for part in args.parts:
        globals()[part](args)


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


def step(layer: TFGWPooling, batch: Batch, up: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Distances, and gradients by name."""
    layer.zero_grad()
    x = batch.x.detach().requires_grad_()
    distances = layer(x, batch.edge_index, batch.batch, batch_size=batch.num_graphs)
    (distances * up).sum().backward()
    return distances.detach(), {"x": x.grad, **{n: p.grad for n, p in layer.named_parameters() if p.grad is not None}}


@torch.no_grad()
def forward(layer: TFGWPooling, batch: Batch) -> torch.Tensor:
    return layer(batch.x, batch.edge_index, batch.batch, batch_size=batch.num_graphs)


def seconds_on_gpu(run: Callable[[], object], repeats: int) -> float:
    """Median wall-clock time of a call, until its last kernel has ended."""
    for _ in range(5):
        run()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        started = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def agreement(args: argparse.Namespace) -> None:
    rows, pairs = [], 0
    for name in args.datasets:
        case = case_of(name, args, 210, 8, jitter=0.1)
        up = torch.randn(case.batch.num_graphs, 8, generator=torch.Generator().manual_seed(0))
        cpu, cpu_grads = step(layer_of(case, "cpu"), case.batch, up)
        gpu, gpu_grads = step(layer_of(case, "cuda"), case.batch.clone().to("cuda"), up.cuda())
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
        layer, batch = layer_of(case, "cuda"), case.batch.clone().to("cuda")
        up = torch.ones(128, 8, device="cuda")
        first, first_grads = step(layer, batch, up)
        for _ in range(5):
            again, grads = step(layer, batch, up)
            assert torch.equal(first, again), name
            assert all(torch.equal(first_grads[n], g) for n, g in grads.items()), name
    print("determinism: six runs with equal bits on each dataset\n")


def layer(args: argparse.Namespace) -> None:
    rows = []
    for name in args.datasets:
        case = case_of(name, args, 128, 8)
        module, batch = layer_of(case, "cuda"), case.batch.clone().to("cuda")
        up = torch.ones(128, 8, device="cuda")
        calls = (partial(forward, module, batch), partial(step, module, batch, up))
        times = [seconds_on_gpu(call, args.repeats) for call in calls]
        largest = int(torch.bincount(case.batch.batch).max())
        rows.append([name, str(case.templates.features.shape[1]), str(largest), *(f"{1e6 * t:,.0f}" for t in times)])
    print("whole layer, 128 graphs × 8 templates, float64, microseconds\n")
    table(["dataset", "template nodes", "largest graph", "forward", "forward + backward"], rows)
    print()


def throughput(args: argparse.Namespace) -> None:
    rows = []
    for name in args.datasets:
        case = case_of(name, args, 4096, 16)
        module, batch = layer_of(case, "cuda"), case.batch.clone().to("cuda")
        t = seconds_on_gpu(partial(forward, module, batch), 10)
        rows.append([name, f"{1e3 * t:.2f}", f"{4096 * 16 / t / 1e6:.1f}", f"{1e9 * t / 4096 / 16:.0f}"])
    print("throughput, 4096 graphs × 16 templates, float64, forward\n")
    table(["dataset", "milliseconds", "million pairs per second", "nanoseconds per pair"], rows)
    print()


def training(args: argparse.Namespace) -> None:
    """As in the paper: batches of 128, Adam, projections, validation every 5 epochs."""
    rows = []
    for name, templates, epochs in (("MUTAG", 8, 500), ("NCI1", 8, 20), ("COLLAB", 12, 1)):
        dataset = read(name, args.data_dir)
        order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0))
        held_out = len(dataset) // 10
        train, validation = dataset[order[held_out:]], dataset[order[:held_out]]
        nodes = int(np.median([g.num_nodes for g in dataset]))
        config = TFGWConfig(
            in_channels=dataset.num_node_features,
            out_channels=dataset.num_classes,
            num_templates=templates,
            template_nodes=nodes,
            num_layers=2,
            width=16,
        )
        model = TFGWModel(config).init_templates(train)
        settings = TrainConfig(epochs=epochs, batch_size=128, accelerator="cuda", precision="float64")
        fit(model, train[:256], config=TrainConfig(epochs=1, accelerator="cuda", precision="float64"))
        torch.cuda.synchronize()
        started = time.perf_counter()
        fit(model, train, validation, config=settings)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - started
        rows.append([name, f"{templates} × {nodes}", str(epochs), f"{seconds:.1f}", f"{seconds / epochs:.3f}"])
    print("training on the GPU, float64\n")
    table(["dataset", "K × template nodes", "epochs", "seconds", "seconds per epoch"], rows)
    print()


if __name__ == "__main__":
    main()

"""Time to fit the default models on a whole dataset: the kernel machine of ``tfgw train``, and TFGWClassifier.

python benchmarks/default_fit.py --data-dir FOLDER
python benchmarks/default_fit.py --models network --epochs 200 --accelerator cuda
python benchmarks/default_fit.py --profile     # kernels of a training step on a GPU, for one network and for three
"""

from common import parser, read_labelled, table  # isort: skip  (pins BLAS threads first)

import time
from collections import Counter
from math import ceil
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch_geometric.data import Data

from tfgw.estimators import TFGWClassifier, TFGWKernelClassifier
from tfgw.train.recipes import complete

EPOCHS = (2, 6)  # of the two trainings that a profile compares: what is done once cancels out


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(datasets=["MUTAG", "NCI1"])
    p.add_argument("--models", nargs="+", choices=["kernel", "network"], default=["kernel", "network"])
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--accelerator", default="auto", choices=["auto", "cpu", "cuda"])
    p.add_argument("--epochs", type=int, help="number of epochs of the network (default: that of the recipe)")
    p.add_argument("--profile", action="store_true", help="print the kernels of a training step instead")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    if args.profile:
        for name in args.datasets:
            for networks in (1, 3):
                print_profile(name, *read_labelled(name, args.data_dir), networks, args.seed)
        return
    rows = []
    for name in args.datasets:
        graphs, labels = read_labelled(name, args.data_dir)
        settings = {"random_state": args.seed, "accelerator": args.accelerator}
        for kind in args.models:
            warm_up, model = models(kind, args.epochs, settings)
            few = slice(None, None, max(1, len(graphs) // 64))
            warm_up.fit(graphs[few], labels[few])  # compiles kernels
            start, cpu_start = time.perf_counter(), time.process_time()
            model.fit(graphs, labels)
            seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
            if kind == "kernel":
                described = ["-", f"{model.loo_score_:.3f} (leave-one-out)"]
            else:
                described = [str(model.n_iter_), f"{model.history_[-1].score:.3f} (training graphs)"]
            rows.append(
                [name, str(len(graphs)), kind, described[0], f"{seconds:.1f}", f"{cpu_seconds:.1f}", described[1]]
            )
    print(f"fit with default settings; {args.threads} threads, accelerator {args.accelerator}\n")
    table(["dataset", "graphs", "model", "epochs", "seconds", "CPU seconds", "accuracy"], rows)


def models(kind: str, epochs: int | None, settings: dict[str, Any]) -> tuple[Any, Any]:
    """Return an estimator for a warm-up and the one to measure."""
    if kind == "kernel":
        return TFGWKernelClassifier(**settings), TFGWKernelClassifier(**settings)
    return TFGWClassifier(epochs=1, **settings), TFGWClassifier(epochs=epochs, **settings)


def print_profile(name: str, graphs: list[Data], labels: list[int], networks: int, seed: int) -> None:
    """Print number and time of the kernels of a step, and the kernels that take longest."""
    batch_size = complete({}, "default", num_graphs=len(graphs))["batch_size"]
    steps = (EPOCHS[1] - EPOCHS[0]) * ceil(len(graphs) / batch_size)

    def fit(epochs: int) -> float:
        model = TFGWClassifier(
            n_estimators=networks, epochs=epochs, batch_size=batch_size, random_state=seed, accelerator="cuda"
        )
        start = time.perf_counter()
        model.fit(graphs, labels)
        torch.cuda.synchronize()
        return time.perf_counter() - start

    fit(1)  # compiles kernels
    few, many = (min(fit(epochs) for _ in range(3)) for epochs in EPOCHS)
    counts, times = Counter[str](), Counter[str]()
    for sign, epochs in zip((-1, 1), EPOCHS, strict=True):
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            fit(epochs)
        for kernel in profiled.key_averages():
            counts[kernel.key] += sign * kernel.count
            times[kernel.key] += sign * kernel.self_device_time_total
    print(
        f"{name}, {networks} network{'s' if networks > 1 else ''}: {1e6 * (many - few) / steps:.0f} µs per step, "
        f"{counts.total() / steps:.0f} kernels, which take {times.total() / steps:.0f} µs together"
    )
    rows = [[f"{time / steps:.1f}", f"{counts[key] / steps:.1f}", key[:100]] for key, time in times.most_common(25)]
    table(["µs per step", "launches", "kernel"], rows)
    print()


if __name__ == "__main__":
    main()

"""Time to fit the default models on a whole dataset: the kernel machine of ``tfgw train``, and TFGWClassifier.

python benchmarks/default_fit.py --data-dir FOLDER
python benchmarks/default_fit.py --models network --epochs 200 --accelerator cuda
"""

from common import parser, read_labelled, table  # isort: skip  (pins BLAS threads first)

import time
from typing import Any

import torch

from tfgw.estimators import TFGWClassifier, TFGWKernelClassifier


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(datasets=["MUTAG", "NCI1"])
    p.add_argument("--models", nargs="+", choices=["kernel", "network"], default=["kernel", "network"])
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--accelerator", default="auto", choices=["auto", "cpu", "cuda"])
    p.add_argument("--epochs", type=int, help="number of epochs of the network (default: that of the recipe)")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
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


if __name__ == "__main__":
    main()

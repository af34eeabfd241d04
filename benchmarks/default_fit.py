"""Time to fit TFGWClassifier with its defaults on a whole dataset.

python benchmarks/default_fit.py --data-dir FOLDER
"""

from common import parser, read_labelled, table  # isort: skip  (pins BLAS threads first)

import time

import torch

from tfgw.estimators import TFGWClassifier


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(datasets=["MUTAG", "NCI1"])
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--accelerator", default="auto", choices=["auto", "cpu", "cuda"])
    p.add_argument("--epochs", type=int, help="number of epochs (default: that of the recipe)")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    rows = []
    for name in args.datasets:
        graphs, labels = read_labelled(name, args.data_dir)
        settings = {"random_state": args.seed, "accelerator": args.accelerator}
        TFGWClassifier(epochs=1, **settings).fit(graphs, labels)  # warm-up, which compiles kernels
        model = TFGWClassifier(epochs=args.epochs, **settings)
        start = time.perf_counter()
        model.fit(graphs, labels)
        seconds = time.perf_counter() - start
        rows.append([name, str(len(graphs)), str(model.n_iter_), f"{seconds:.1f}", f"{model.history_[-1].score:.3f}"])
    print(f"seconds of a fit; {args.threads} threads, accelerator {args.accelerator}\n")
    table(["dataset", "graphs", "epochs", "seconds", "accuracy in the last epoch"], rows)


if __name__ == "__main__":
    main()

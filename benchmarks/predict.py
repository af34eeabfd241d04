"""Prediction time of a fitted classifier: one graph at a time, and a whole dataset in one call.

python benchmarks/predict.py --data-dir FOLDER
python benchmarks/predict.py --recipe paper     # one small network instead of the three of the default recipe
"""

from common import parser, read_labelled, seconds, table  # isort: skip  (pins BLAS threads first)

import statistics

import torch

from tfgw.estimators import TFGWClassifier
from tfgw.train.recipes import RECIPES


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(datasets=["MUTAG", "PTC_MR"], templates=None)  # by default, as many as the recipe has
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--recipe", default="default", choices=sorted(RECIPES))
    p.add_argument("--repeats", type=int, default=15, help="number of timed calls with the whole dataset")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    rows = []
    for name in args.datasets:
        graphs, labels = read_labelled(name, args.data_dir)
        settings = {"num_templates": args.templates, "recipe": args.recipe, "random_state": args.seed}
        model = TFGWClassifier(epochs=1, accelerator="cpu", **settings)
        model.fit(graphs, labels)
        chosen = graphs[: args.graphs]
        for graph in chosen:  # warm-up
            model.predict([graph])
        one = [seconds(model.predict, [graph]) for graph in chosen for _ in range(args.repeats)]
        whole = [seconds(model.predict, graphs) for _ in range(args.repeats)]
        per_graph = statistics.median(whole) / len(graphs)
        milliseconds = [1e3 * statistics.median(one), 1e3 * min(one), 1e3 * per_graph]
        count = len(model.templates_.features)  # of all networks
        rows.append([name, str(len(graphs)), str(count), *(f"{value:.3f}" for value in milliseconds)])
    print(f"milliseconds of predict; recipe {args.recipe}, {args.threads} threads\n")
    table(["dataset", "graphs", "templates", "one graph, median", "minimum", "per graph, all in one call"], rows)


if __name__ == "__main__":
    main()

"""Iterations and errors of the solver for looser tolerances, as in the training steps of the default recipe.

python benchmarks/training_tolerance.py --data-dir FOLDER

The features are those of an untrained encoder. A GPU waits for the pairs with the most work (iterations times nodes).
"""

from common import parser, read, table  # isort: skip  (pins BLAS threads first)

import numpy as np
import torch
from torch_geometric.data import Batch

from tfgw.datasets import CanonicalOrder
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.train.recipes import RECIPES

TOLERANCES = (1e-9, 1e-6, 1e-5, 1e-4, 1e-3)
SLOWEST = 10


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(datasets=["NCI1"], graphs=256, templates=4)
    args = p.parse_args()
    rows = []
    for name in args.datasets:
        dataset = read(name, args.data_dir)
        chosen = np.random.default_rng(args.seed).choice(len(dataset), args.graphs, replace=False)
        graphs = [CanonicalOrder()(dataset[int(i)]) for i in chosen]
        model = untrained(graphs, args.templates, args.seed)
        batch = Batch.from_data_list(graphs)
        with torch.no_grad():
            x = model.encoder(batch.x, batch.edge_index)
        exact = None
        for tol in TOLERANCES:
            model.pool.tol = tol
            with torch.no_grad():
                found = model.pool.solve(x, batch.edge_index, batch.batch, plans=None)
            exact = found.distances if exact is None else exact
            error = (found.distances - exact) / exact
            iterations = found.iterations.double()
            work = (iterations * batch.batch.bincount()[:, None]).flatten()
            slowest = float(work.topk(SLOWEST).values.mean())
            rows.append(
                [name, f"{tol:.0e}", f"{iterations.mean():.1f}", f"{work.mean():.0f}", f"{slowest:.0f}"]
                + [f"{value:.0e}" for value in (error.mean(), error.max())]
            )
    header = ["dataset", "tolerance", "iterations", "work, mean", f"{SLOWEST} slowest pairs", "error, mean", "largest"]
    table(header, rows)


def untrained(graphs: list, templates: int, seed: int) -> TFGWModel:
    """Return a network of the default recipe with templates drawn from the graphs."""
    torch.manual_seed(seed)
    settings = {name: RECIPES["default"][name] for name in ("num_layers", "width", "activation")}
    nodes = int(np.median([graph.num_nodes for graph in graphs]))
    channels = graphs[0].x.shape[1]
    config = TFGWConfig(in_channels=channels, out_channels=2, num_templates=templates, template_nodes=nodes, **settings)
    return TFGWModel(config).init_templates(graphs, seed=seed)


if __name__ == "__main__":
    main()

"""Errors of the sums of explanations, and their equivariance to renumbering of nodes, on real graphs.

python benchmarks/explanation_sums.py --data-dir FOLDER
python benchmarks/explanation_sums.py --data-dir FOLDER --model kernel --graphs 20
"""

from common import parser, read_labelled, table  # isort: skip  (pins BLAS threads first)

import time

import torch
from torch_geometric.explain import Explanation

import tfgw
from tfgw.datasets.canonical import reordered
from tfgw.estimators import TFGWClassifier, TFGWKernelClassifier


def sums(found: Explanation) -> list[torch.Tensor]:
    """The total at each level, which is the score minus that of the reference."""
    if "rest" in found:
        rest, node_rest = found.rest, found.node_rest_features.sum()
    else:
        rest, node_rest = found.readout, found.node_readout.sum()
    return [
        found.templates.sum() + rest,
        found.template_structure.sum() + found.template_features.sum() + rest,
        found.node_mask.sum(),
        found.edge_mask.sum() + found.node_absent_links.sum() + found.node_features.sum() + node_rest,
    ]


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(datasets=["MUTAG", "PTC_MR", "ENZYMES", "IMDB-BINARY"], graphs=280)
    p.add_argument("--model", choices=["network", "kernel"], default="network")
    args = p.parse_args()
    generator, rows = torch.Generator().manual_seed(args.seed), []
    for name in args.datasets:
        graphs, labels = read_labelled(name, args.data_dir)
        model = (
            TFGWKernelClassifier(accelerator="cpu")
            if args.model == "kernel"
            else TFGWClassifier(epochs=2, random_state=args.seed, accelerator="cpu")
        ).fit(graphs, labels)
        worst_sum = worst_order = seconds = 0.0
        chosen = graphs[:: max(1, len(graphs) // args.graphs)][: args.graphs]
        for graph in chosen:
            begin = time.perf_counter()
            found = tfgw.explain(model, graph)
            seconds += (time.perf_counter() - begin) / len(chosen)
            whole = found.score - found.reference_score
            worst_sum = max(worst_sum, *(abs(float(whole - total)) for total in sums(found)))
            order = torch.randperm(graph.num_nodes, generator=generator)
            other = tfgw.explain(model, reordered(graph.clone(), order))
            worst_order = max(worst_order, float((other.node_mask - found.node_mask[order]).abs().max()))
        rows.append([name, str(len(chosen)), f"{worst_sum:.1e}", f"{worst_order:.1e}", f"{1000 * seconds:.0f}"])
    table(["dataset", "graphs", "worst error of a sum", "worst change by renumbering", "ms per graph"], rows)


if __name__ == "__main__":
    main()

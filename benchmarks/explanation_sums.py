"""Errors of the sums of explanations, and their equivariance to renumbering of nodes, on real graphs.

python benchmarks/explanation_sums.py --data-dir FOLDER
"""

from common import parser, read_labelled, table  # isort: skip  (pins BLAS threads first)

import torch

import tfgw
from tfgw.datasets.canonical import reordered
from tfgw.estimators import TFGWClassifier


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(datasets=["MUTAG", "PTC_MR", "ENZYMES", "IMDB-BINARY"], graphs=280)
    args = p.parse_args()
    generator, rows = torch.Generator().manual_seed(args.seed), []
    for name in args.datasets:
        graphs, labels = read_labelled(name, args.data_dir)
        model = TFGWClassifier(epochs=2, random_state=args.seed, accelerator="cpu").fit(graphs, labels)
        worst_sum = worst_order = 0.0
        chosen = graphs[:: max(1, len(graphs) // args.graphs)][: args.graphs]
        for graph in chosen:
            found = tfgw.explain(model, graph)
            rest = found.node_features.sum() + found.node_readout.sum()
            sums = [
                found.templates.sum() + found.readout,
                found.template_structure.sum() + found.template_features.sum() + found.readout,
                found.node_mask.sum(),
                found.edge_mask.sum() + found.node_absent_links.sum() + rest,
            ]
            worst_sum = max(worst_sum, *(abs(float(found.score - found.reference_score - total)) for total in sums))
            order = torch.randperm(graph.num_nodes, generator=generator)
            other = tfgw.explain(model, reordered(graph.clone(), order))
            worst_order = max(worst_order, float((other.node_mask - found.node_mask[order]).abs().max()))
        rows.append([name, str(len(chosen)), f"{worst_sum:.1e}", f"{worst_order:.1e}"])
    table(["dataset", "graphs", "worst error of a sum", "worst change by renumbering"], rows)


if __name__ == "__main__":
    main()

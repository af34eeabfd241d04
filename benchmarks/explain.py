"""Detection of planted motifs by explanations, compared with GNNExplainer on the same models in one run.

    python benchmarks/explain.py

For each motif, there are 240 graphs: random trees, half of them with the motif attached, the other half with a random
tree of the same size. One network is trained with the default recipe on 200 of them; the explanations of the correctly
classified other graphs with a motif are evaluated: area under the ROC curve of node masks (is the node in the motif?),
PyTorch Geometric's fidelity of the nodes and edges of the highest masks, as many as the motif has, and its
unfaithfulness. GNNExplainer learns masks of nodes and edges, which act on the structure term, too (MaskableModel).
"""

from common import seconds, table  # isort: skip  (pins BLAS threads first)

import argparse
import time

import networkx as nx
import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, Explanation, GNNExplainer
from torch_geometric.explain.metric import fidelity, unfaithfulness

from tfgw.estimators import TFGWClassifier
from tfgw.explanations import MaskableModel, TFGWExplainer

MOTIFS = {
    "house": nx.house_graph(),
    "ring of 6": nx.cycle_graph(6),
    "clique of 5": nx.complete_graph(5),
    "grid 3 × 3": nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3)),
}
CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
MASKS = {"explanation_type": "model", "node_mask_type": "object", "edge_mask_type": "object"}


def random_tree(nodes: int, rng: np.random.Generator) -> nx.Graph:
    return nx.from_edgelist([(node, int(rng.integers(node))) for node in range(1, nodes)])


def planted(motif: nx.Graph, count: int, rng: np.random.Generator) -> list[Data]:
    """Create graphs without (0) and with (1) the motif in turn; ``in_motif`` marks its nodes."""
    graphs = []
    for number in range(count):
        base, has_motif = int(rng.integers(12, 20)), number % 2
        part = motif if has_motif else random_tree(len(motif), rng)
        graph = nx.disjoint_union(random_tree(base, rng), part)
        graph.add_edge(int(rng.integers(base)), base + int(rng.integers(len(part))))
        order = rng.permutation(len(graph))
        C = torch.from_numpy(nx.to_numpy_array(graph, nodelist=order.tolist()))
        degrees = C.sum(1).clamp_max(6).long()
        data = Data(x=torch.nn.functional.one_hot(degrees, 7).double(), edge_index=C.nonzero().T.contiguous())
        data.y, data.in_motif = has_motif, torch.from_numpy(has_motif * (order >= base))
        graphs.append(data)
    return graphs


def explained(explainer: Explainer, graph: Data, motif: nx.Graph) -> tuple[float, ...]:
    """ROC-AUC of the node mask, fidelity + and −, and unfaithfulness."""
    explanation = explainer(graph.x, graph.edge_index)
    area = roc_auc_score(graph.in_motif, explanation.node_mask.flatten())
    hard = Explanation(**explanation.to_dict())
    hard.node_mask = _highest(explanation.node_mask, len(motif))
    hard.edge_mask = _highest(explanation.edge_mask, 2 * motif.number_of_edges())
    hard._model_args, hard._model_config = [], explanation._model_config
    return (area, *fidelity(explainer, hard), unfaithfulness(explainer, explanation))


def _highest(mask: torch.Tensor, count: int) -> torch.Tensor:
    chosen = torch.zeros_like(mask)
    chosen.view(-1)[mask.flatten().topk(count).indices] = 1
    return chosen


def measure(name: str, args: argparse.Namespace) -> list[list[str]]:
    motif, rng = MOTIFS[name], np.random.default_rng(args.seed)
    graphs = planted(motif, args.train + args.test, rng)
    train, test = graphs[: args.train], graphs[args.train :]
    classifier = TFGWClassifier(n_estimators=1, random_state=args.seed, canonical_order=False)
    classifier.fit(train, [graph.y for graph in train])
    predicted = classifier.predict(test)
    accuracy = float(np.mean(predicted == [graph.y for graph in test]))
    chosen = [graph for graph, label in zip(test, predicted, strict=True) if graph.y == label == 1]
    model, rows = MaskableModel(classifier.model_), []
    for title, algorithm in {"tfgw": TFGWExplainer(), "GNNExplainer": GNNExplainer(epochs=args.epochs)}.items():
        torch.manual_seed(args.seed)
        explainer = Explainer(model, algorithm, model_config=CONFIG, **MASKS)
        found = np.array([explained(explainer, graph, motif) for graph in chosen])
        elapsed = np.mean([seconds(explainer, graph.x, graph.edge_index) for graph in chosen[:5]])
        means = [f"{value:.3f}" for value in found.mean(0)]
        rows.append([name, title, *means, f"{1000 * elapsed:.0f}", f"{accuracy:.2f}", str(len(chosen))])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motifs", nargs="+", default=list(MOTIFS), choices=list(MOTIFS), metavar="NAME")
    parser.add_argument("--train", type=int, default=200, help="number of training graphs")
    parser.add_argument("--test", type=int, default=40, help="number of test graphs, half of which have the motif")
    parser.add_argument("--epochs", type=int, default=100, help="steps of GNNExplainer, its default")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    started = time.perf_counter()
    rows = [row for name in args.motifs for row in measure(name, args)]
    header = ["motif", "explainer", "ROC-AUC of nodes", "fidelity +", "fidelity −", "unfaithfulness"]
    table([*header, "ms per graph", "test accuracy", "graphs"], rows)
    print(f"\n{time.perf_counter() - started:.0f} s in total")


if __name__ == "__main__":
    main()

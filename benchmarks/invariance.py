"""Change of the distance between a graph and a template when nodes are renumbered, for 1,000 random triples each.

    python benchmarks/invariance.py --data-dir FOLDER
    python benchmarks/invariance.py --data-dir FOLDER --device cuda

A triple is a graph, a renumbering of its nodes, and a template sampled from the data (renumbered as well for tfgw). The
relative change of FGW is printed for tfgw with canonical order, for tfgw without, and for POT's
fused_gromov_wasserstein2. The two generated datasets have no features: α = 1, and at least four starts, as the docs
recommend.

On a GPU, where one call takes about as long for one pair as for hundreds, graphs are compared with all templates, 50 at
a time, in canonical order, and renumbered ones with templates that are renumbered anew for each call. A graph counts as
equal if all of its distances are, bit for bit. There is a single start.
"""

from common import permuted, read, table  # isort: skip  (pins BLAS threads first)

import argparse
import warnings

import numpy as np
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_dense_adj

from tfgw import ot as tot
from tfgw.datasets import CanonicalOrder, GraphDataset
from tfgw.datasets.synthetic import GENERATORS
from tfgw.nn import sample_templates

REAL = ("MUTAG", "PTC_MR", "ENZYMES", "PROTEINS_full", "NCI1", "IMDB-BINARY", "IMDB-MULTI", "COLLAB")
AT_ONCE = 50


def load(name: str, data_dir: str | None) -> GraphDataset:
    if name in GENERATORS:
        torch.set_default_dtype(torch.float64)
        return GENERATORS[name](seed=0).train
    return read(name, data_dir)


def ours(graph: Data, templates: tot.Templates, alpha: float, starts: int) -> float:
    graphs = tot.GraphBatch(graph.x, edge_index=graph.edge_index)
    return float(tot.fgw(graphs, templates, alpha, n_starts=starts, plans=None).distances)


def pots(graph: Data, templates: tot.Templates, alpha: float) -> float:
    import ot  # not needed on a GPU

    C = to_dense_adj(graph.edge_index, max_num_nodes=graph.num_nodes)[0].double().numpy()
    C2, F2 = templates.structure[0].numpy(), templates.features[0].numpy()
    p, q = np.full(len(C), 1 / len(C)), np.full(len(C2), 1 / len(C2))
    M = ot.dist(graph.x.numpy(), F2)
    return float(ot.gromov.fused_gromov_wasserstein2(M, C, C2, p, q, alpha=alpha, max_iter=1000, symmetric=True))


def change(before: float, after: float) -> float:
    return abs(after - before) / max(abs(before), abs(after), 1e-12)


def measure(name: str, args: argparse.Namespace) -> list[list[str]]:
    dataset = load(name, args.data_dir)
    alpha, starts = (1.0, max(4, args.starts)) if name in GENERATORS else (0.5, args.starts)
    rng = np.random.default_rng(args.seed)
    nodes = int(np.median([graph.num_nodes for graph in dataset]))
    templates = sample_templates(list(dataset), args.templates, nodes, seed=args.seed)
    canonical = CanonicalOrder()
    changes: dict[str, list[float]] = {"tfgw, canonical order": [], "tfgw, order as given": [], "POT": []}
    for _ in range(args.triples):
        graph = dataset[int(rng.integers(len(dataset)))]
        graph = Data(x=graph.x, edge_index=graph.edge_index)
        other = permuted(graph, rng)
        k, order = int(rng.integers(args.templates)), torch.from_numpy(rng.permutation(nodes))
        C, F = templates.structure[k], templates.features[k]
        before = tot.Templates(F[None], C[None])
        after = tot.Templates(F[order][None], C[order][:, order][None])
        for label, form in (("tfgw, canonical order", canonical), ("tfgw, order as given", Data.clone)):
            values = ours(form(graph), before, alpha, starts), ours(form(other), after, alpha, starts)
            changes[label].append(change(*values))
        if not args.no_pot:
            changes["POT"].append(change(pots(graph, before, alpha), pots(other, before, alpha)))
    rows = []
    for label, found in changes.items():
        if found:
            found = np.array(found)
            same = int((found <= 1e-9).sum())
            moved = f"{100 * (found > 1e-6).mean():.1f} %"
            rows.append([name, label, f"{same} of {len(found)}", moved, f"{100 * np.median(found):.2g} %"])
            rows[-1].append(f"{100 * found.max():.2g} %")
    return rows


def equal_bits(name: str, args: argparse.Namespace) -> list[str]:
    """Count the graphs whose distances have equal bits before and after graphs and templates are renumbered."""
    dataset = load(name, args.data_dir)
    alpha = 1.0 if name in GENERATORS else 0.5
    rng = np.random.default_rng(args.seed)
    nodes = int(np.median([graph.num_nodes for graph in dataset]))
    templates = sample_templates(list(dataset), args.templates, nodes, seed=args.seed)
    C, F = templates.structure, templates.features
    equal, largest = 0, 0.0
    for first in range(0, args.triples, AT_ONCE):
        chosen = [dataset[int(i)] for i in rng.integers(len(dataset), size=min(AT_ONCE, args.triples - first))]
        graphs = [Data(x=graph.x, edge_index=graph.edge_index) for graph in chosen]
        orders = [torch.from_numpy(rng.permutation(nodes)) for _ in range(args.templates)]
        after = tot.Templates(
            torch.stack([F[k][order] for k, order in enumerate(orders)]),
            torch.stack([C[k][order][:, order] for k, order in enumerate(orders)]),
        )
        before = solved(graphs, tot.Templates(F, C), alpha, args.device)
        found = solved([permuted(graph, rng) for graph in graphs], after, alpha, args.device)
        equal += int((before == found).all(1).sum())
        largest = max(largest, *(change(*pair) for pair in zip(before.flatten(), found.flatten(), strict=True)))
    return [name, str(nodes), f"{equal} of {args.triples}", f"{100 * largest:.2g} %"]


def solved(graphs: list[Data], templates: tot.Templates, alpha: float, device: str) -> torch.Tensor:
    canonical = CanonicalOrder()
    batch = Batch.from_data_list([canonical(graph) for graph in graphs]).to(device)
    given = tot.GraphBatch(batch.x, batch=batch.batch, batch_size=len(graphs), edge_index=batch.edge_index)
    on_device = tot.Templates(templates.features.to(device), templates.structure.to(device))
    return tot.fgw(given, on_device, alpha, plans=None).distances.cpu()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--datasets", nargs="+", default=[*REAL, *GENERATORS], metavar="NAME")
    parser.add_argument("--triples", type=int, default=1000)
    parser.add_argument("--templates", type=int, default=8)
    parser.add_argument("--starts", type=int, default=1, help="solver starts of tfgw per pair")
    parser.add_argument("--no-pot", action="store_true", help="do not run POT")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", help="compare bits on this device, such as cuda, without POT")
    args = parser.parse_args()
    if args.device:
        rows = [equal_bits(name, args) for name in args.datasets]
        print(f"{args.triples} renumbered graphs per dataset, {args.templates} templates, on {args.device}\n")
        return table(["dataset", "template nodes", "equal bits", "worst change"], rows)
    warnings.filterwarnings("ignore", module="ot")
    rows = [row for name in args.datasets for row in measure(name, args)]
    print(f"{args.triples} triples per dataset; relative change of the value\n")
    table(["dataset", "solver", "equal to 1e-9", "moved by more than 1e-6", "median", "worst"], rows)


if __name__ == "__main__":
    main()

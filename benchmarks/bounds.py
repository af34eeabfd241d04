"""Validity and tightness of the certified lower bound.

    python benchmarks/bounds.py --data-dir FOLDER

10,000 random pairs of every kind (sparse, weighted, directed, dense; random weights, zeros among them; α from 0 to 1)
compared with the best of 16 starts; then graphs of each dataset and templates sampled from it.
"""

from common import make_case, parser, table  # isort: skip  (pins BLAS threads first)

import numpy as np
import torch

from tfgw import ot as tot

KINDS = ("sparse", "weighted", "directed", "dense")


def random_pairs(seed: int, graphs: int, templates: int) -> tuple[tot.GraphBatch, tot.Templates, torch.Tensor]:
    rng = np.random.default_rng(seed)
    kind, m, d = KINDS[seed % len(KINDS)], int(rng.integers(1, 12)), int(rng.integers(1, 4))
    sizes = rng.integers(1, 14, graphs)
    blocks = []
    for n in sizes:
        C = rng.normal(size=(n, n)) if kind == "dense" else (rng.random((n, n)) < 0.4) * 1.0
        C = C * rng.random((n, n)) if kind == "weighted" else C
        blocks.append(C if kind == "directed" else np.triu(C) + np.triu(C, 1).T)
    C_bar = rng.choice([0.0, 1.0], (templates, m, m)) if rng.random() < 0.5 else rng.random((templates, m, m))
    if kind != "directed":
        C_bar = np.triu(C_bar) + np.triu(C_bar, 1).transpose(0, 2, 1)
    h_bar = rng.random((templates, m)) * (rng.random((templates, m)) < 0.9)
    h_bar[:, 0] += 0.01
    h_bar /= h_bar.sum(1, keepdims=True)
    h = np.concatenate([rng.dirichlet(np.ones(n)) for n in sizes])
    discrete = rng.random() < 0.5
    x = rng.integers(0, 2, (sizes.sum(), d)) * 1.0 if discrete else rng.normal(size=(sizes.sum(), d))
    f = rng.integers(0, 2, (templates, m, d)) * 1.0 if discrete else rng.normal(size=(templates, m, d))
    batch = torch.arange(graphs).repeat_interleave(torch.from_numpy(sizes))
    structure = torch.from_numpy(np.concatenate([C.flatten() for C in blocks]))
    return (
        tot.GraphBatch(torch.from_numpy(x), batch=batch, structure=structure, node_weights=torch.from_numpy(h)),
        tot.Templates(torch.from_numpy(f), torch.from_numpy(C_bar), torch.from_numpy(h_bar)),
        torch.from_numpy(rng.choice([0.0, 0.2, 0.5, 0.9, 1.0, rng.random()], templates)),
    )


def main() -> None:
    p = parser(__doc__)
    p.add_argument("--pairs", type=int, default=10_000)
    p.add_argument("--starts", type=int, default=16)
    p.set_defaults(graphs=32)
    args = p.parse_args()
    above, seen, tight = 0, 0, []
    while seen < args.pairs:
        found = tot.diagnose(*random_pairs(args.seed + seen, 10, 5), n_starts=args.starts)
        above += int((found.lower_bounds > found.distances).sum())
        seen += found.distances.numel()
        tight.append((found.lower_bounds / found.distances.clamp_min(1e-300)).flatten())
    print(f"{seen} random pairs: the bound is above the best of {args.starts} starts for {above}; ", end="")
    print(f"it is {100 * float(torch.cat(tight).median()):.0f} % of it in the median\n")
    rows = []
    for name in args.datasets:
        case = make_case(name, args)
        graphs = tot.GraphBatch(case.batch.x, batch=case.batch.batch, edge_index=case.batch.edge_index)
        found = tot.diagnose(graphs, case.templates, 0.5, n_starts=args.starts)
        share = (found.lower_bounds / found.distances.clamp_min(1e-300)).flatten()
        above = int((found.lower_bounds > found.distances).sum())
        minima = float(found.local_minima.double().mean())
        cells = [f"{100 * float(v):.1f} %" for v in (share.median(), share.min(), minima)]
        rows.append([name, str(above), *cells])
    table(["dataset", "pairs above", "bound / value, median", "lowest", "local minima"], rows)


if __name__ == "__main__":
    main()

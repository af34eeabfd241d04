"""Common functions of the benchmarks: batches of real graphs with templates, and timing."""

import os

# Limit BLAS to one thread before NumPy is loaded, because POT's timings depend on it; our solver has its own threads.
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch_geometric.data import Batch, Data

from tfgw import ot as tot
from tfgw.datasets import GraphDataset, Standardize
from tfgw.nn import sample_templates
from tfgw.paper.cell_graphs import load_graphs

SIX = ("MUTAG", "PTC_MR", "ENZYMES", "NCI1", "IMDB-BINARY", "PROTEINS_full")
ATTRIBUTES = ("ENZYMES", "PROTEINS_full")


class Case(NamedTuple):
    name: str
    graphs: list[Data]
    batch: Batch
    templates: tot.Templates


def parser(description: str | None) -> argparse.ArgumentParser:
    """Create a parser with the common options."""
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--data-dir", help="folder with the TU archives (default: environment variable TFGW_DATA)")
    p.add_argument("--datasets", nargs="+", default=list(SIX), metavar="NAME")
    p.add_argument("--graphs", type=int, default=64, help="graphs per batch")
    p.add_argument("--templates", type=int, default=8, help="number of templates")
    p.add_argument("--seed", type=int, default=0)
    return p


def read(name: str, data_dir: str | None) -> GraphDataset:
    torch.set_default_dtype(torch.float64)
    dataset = load_graphs(name, data_dir)
    if name in ATTRIBUTES:
        dataset = Standardize().fit(dataset, range(len(dataset))).transform(dataset)
    return dataset


def read_labelled(name: str, data_dir: str | None) -> tuple[list[Data], list[int]]:
    """Return all graphs of a dataset, and their classes."""
    graphs = list(read(name, data_dir))
    return graphs, [int(graph.y) for graph in graphs]


def make_case(name: str, args: argparse.Namespace) -> Case:
    """Return a batch of random graphs, and templates of the median size, sampled as by the paper's authors."""
    dataset = read(name, args.data_dir)
    rng = np.random.default_rng(args.seed)
    graphs = [dataset[int(i)] for i in rng.choice(len(dataset), min(args.graphs, len(dataset)), replace=False)]
    nodes = int(np.median([g.num_nodes for g in dataset]))
    templates = sample_templates(list(dataset), args.templates, nodes, seed=args.seed)
    return Case(name, graphs, Batch.from_data_list(graphs), templates)


def permuted(graph: Data, rng: np.random.Generator) -> Data:
    """Return the graph with renumbered nodes."""
    order = torch.from_numpy(rng.permutation(graph.num_nodes))
    return Data(x=graph.x[order], edge_index=order.argsort()[graph.edge_index])


def seconds(run: Callable[..., object], *arguments: object) -> float:
    started = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - started


def table(header: list[str], rows: list[list[str]]) -> None:
    """Print rows as a Markdown table."""
    widths = [max(len(r[c]) for r in [header, *rows]) for c in range(len(header))]
    line = "| " + " | ".join(f"{{:<{w}}}" for w in widths) + " |"
    print(line.format(*header))
    print("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    for row in rows:
        print(line.format(*row), flush=True)

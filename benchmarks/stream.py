"""``tfgw embed`` on a file of many molecule-like graphs: graphs per second in total, and memory over time.

python benchmarks/stream.py --graphs 200000                                    # a file of 20-node graphs, 8 templates
python benchmarks/stream.py --graphs 1000000 --format parquet --accelerator cuda --batch-size 8192

The command runs in a separate process. The measurement includes importing PyTorch, reading the file, features,
canonical order, the solver and writing. A second rate excludes the first and last tenth of the graphs, and so startup
and shutdown.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from tfgw.datasets import NodeEncoding, save
from tfgw.datasets.graph_dataset import build_dataset
from tfgw.datasets.graph_tables import GraphTables, starts
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.train import Preprocessing, TrainedModel, save_model

AT_ONCE = 50_000
LABELS = 9


def molecules(graphs: int, nodes: int, rng: np.random.Generator) -> GraphTables:
    """Random trees whose nodes have few neighbours, two rings closed in each, labelled like atoms."""
    child = np.arange(1, nodes)
    parent = child - 1 - rng.integers(0, 3, (graphs, nodes - 1)).clip(max=child - 1)
    ring = rng.integers(0, nodes - 5, (graphs, 2))
    source = np.concatenate([np.broadcast_to(child, parent.shape), ring], axis=1)
    target = np.concatenate([parent, ring + rng.integers(4, 6, (graphs, 2))], axis=1)
    both = np.concatenate([source, target], axis=1) * nodes + np.concatenate([target, source], axis=1)
    keys = np.sort(both, axis=1)
    is_first = np.ones_like(keys, dtype=bool)
    is_first[:, 1:] = keys[:, 1:] != keys[:, :-1]
    edges = np.stack(np.divmod(keys[is_first], nodes))
    return GraphTables(
        node_counts=np.full(graphs, nodes),
        edge_counts=is_first.sum(axis=1),
        edges=edges,
        node_labels=np.minimum(rng.geometric(0.45, (graphs * nodes, 1)), LABELS),
    )


def write_model(path: Path, tables: GraphTables, templates: int) -> None:
    """Create an untrained model of the default size, which takes as long as a trained one."""
    encoding = NodeEncoding(features="labels", vocabulary=(tuple(range(1, LABELS + 1)),))
    dataset = build_dataset(tables, name="molecules", encoding=encoding)
    preprocessing, nodes = Preprocessing.fit(dataset), int(tables.node_counts[0])
    config = TFGWConfig(in_channels=LABELS, out_channels=2, num_templates=templates, template_nodes=nodes)
    torch.manual_seed(0)
    model = TFGWModel(config).init_templates(preprocessing(dataset))
    trained = TrainedModel(
        model=model, task="classification", classes=(0, 1), preprocessing=preprocessing, source={}, encoding=encoding
    )
    save_model(trained, path)


def write_graphs(folder: Path, args: argparse.Namespace) -> Path:
    """Write the file in pieces."""
    rng = np.random.default_rng(0)
    path = {"tu": folder / "tu", "jsonl": folder / "molecules.jsonl", "parquet": folder / "molecules.parquet"}[
        args.format
    ]
    writer = None
    for first in range(0, args.graphs, AT_ONCE):
        tables = molecules(min(AT_ONCE, args.graphs - first), args.nodes, rng)
        if args.format == "jsonl":
            with path.open("a") as stream:
                stream.writelines(json_lines(tables, first))
        elif args.format == "tu":
            append_tu(tables, path, first, first * args.nodes)
        else:
            from pyarrow import parquet

            piece = parquet.read_table(save(tables, folder / "piece.parquet"))
            (folder / "piece.parquet").unlink()
            writer = writer or parquet.ParquetWriter(path, piece.schema)
            writer.write_table(piece, row_group_size=2**14)
    if writer is not None:
        writer.close()
    return path


def json_lines(tables: GraphTables, first: int) -> list[str]:
    assert tables.node_labels is not None
    nodes, edges = int(tables.node_counts[0]), starts(tables.edge_counts)
    lines = []
    for graph in range(len(tables.node_counts)):
        labels = tables.node_labels[graph * nodes : (graph + 1) * nodes, 0].tolist()
        pairs = tables.edges[:, edges[graph] : edges[graph] + tables.edge_counts[graph]].T.tolist()
        entry = {
            "id": first + graph,
            "nodes": [{"label": label} for label in labels],
            "edges": [{"source": a, "target": b} for a, b in pairs if a < b],
        }
        lines.append(json.dumps(entry) + "\n")
    return lines


def append_tu(tables: GraphTables, folder: Path, first_graph: int, first_node: int) -> None:
    """Append a piece to a dataset in TU format."""
    folder.mkdir(exist_ok=True)
    shift = np.repeat(starts(tables.node_counts), tables.edge_counts) + first_node + 1
    graphs = np.repeat(np.arange(len(tables.node_counts)), tables.node_counts) + first_graph + 1
    parts = {"A": (tables.edges + shift).T, "graph_indicator": graphs, "node_labels": tables.node_labels}
    for name, values in parts.items():
        with (folder / f"molecules_{name}.txt").open("a") as stream:
            np.savetxt(stream, values, fmt="%d", delimiter=", ")


class Watch:
    """Memory and progress of a process and its children, sampled."""

    def __init__(self, process: "subprocess.Popen[bytes]", state: Path) -> None:
        self.megabytes: list[float] = []
        self.progress: list[tuple[float, int]] = []
        while process.poll() is None:
            self.megabytes.append(sum(map(_resident, [process.pid, *_children(process.pid)])) / 2**20)
            with contextlib.suppress(OSError, ValueError):
                self.progress.append((time.perf_counter(), int(json.loads(state.read_text())["graphs"])))
            time.sleep(0.1)

    @property
    def first(self) -> float:
        """When the first graphs were answered."""
        return next((when for when, done in self.progress if done), float("nan"))

    def rate(self, graphs: int) -> float:
        """Graphs per second between the first and the last tenth."""
        inner = [(when, done) for when, done in self.progress if 0.1 * graphs <= done <= 0.9 * graphs]
        if len(inner) < 2 or inner[-1][1] == inner[0][1]:
            return float("nan")
        return (inner[-1][1] - inner[0][1]) / (inner[-1][0] - inner[0][0])


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--graphs", type=int, default=200_000)
    p.add_argument("--nodes", type=int, default=20)
    p.add_argument("--templates", type=int, default=8)
    p.add_argument("--format", choices=["tu", "jsonl", "parquet"], default="parquet", help="format of the graphs")
    p.add_argument("--output", choices=["csv", "jsonl", "parquet"], default="parquet", help="format of the distances")
    p.add_argument("--accelerator", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--batch-size", type=int, help="option of tfgw embed")
    p.add_argument("--workers", type=int, help="option of tfgw embed")
    p.add_argument("--folder", type=Path, help="folder for the files (default: a temporary folder)")
    args = p.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    try:
        run(folder, args)
    finally:
        if args.folder is None:
            shutil.rmtree(folder)


def run(folder: Path, args: argparse.Namespace) -> None:
    model, output = folder / "model.safetensors", folder / f"distances.{args.output}"
    write_model(model, molecules(500, args.nodes, np.random.default_rng(1)), args.templates)
    source = write_graphs(folder, args)
    command = [sys.executable, "-m", "tfgw", "embed", str(model), "--dataset", str(source), "--output", str(output)]
    command += ["--accelerator", args.accelerator]
    for option in ("batch_size", "workers"):
        if getattr(args, option) is not None:
            command += [f"--{option.replace('_', '-')}", str(getattr(args, option))]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command)
    watch = Watch(process, Path(f"{output}.state"))
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        sys.exit(process.returncode)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    quarter = max(1, len(watch.megabytes) // 4)
    early, late = watch.megabytes[quarter : 2 * quarter] or watch.megabytes, watch.megabytes[-quarter:]
    size = sum(file.stat().st_size for file in (source.iterdir() if source.is_dir() else [source])) / 2**20
    print(f"{args.graphs} graphs of {args.nodes} nodes, {args.templates} templates, {args.format} ({size:.0f} MB)")
    print(f"{args.graphs / seconds:.0f} graphs/s end to end, {watch.rate(args.graphs):.0f} graphs/s in the middle")
    print(f"{1e6 * cpu / args.graphs:.0f} µs of CPU time per graph, {seconds:.1f} s")
    print(f"{watch.first - start:.1f} s until the first graphs were answered: imports, the GPU, its kernels")
    print(
        f"memory: peak {max(watch.megabytes):.0f} MB; mean of the second quarter {np.mean(early):.0f} MB, of the last"
        f" {np.mean(late):.0f} MB"
    )


if __name__ == "__main__":
    main()

"""Time of a training epoch, by solver, networks and the rest.

python benchmarks/training.py --dataset MUTAG
python benchmarks/training.py --dataset COLLAB --templates 12 --batches 4     # a part of an epoch, and its memory
"""

import argparse
import resource
import statistics
import time

import torch
from torch.profiler import ProfilerActivity, profile

from tfgw.datasets import GraphDataset, ShortestPaths, Standardize
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.paper.cell_graphs import load_graphs
from tfgw.train import TrainConfig, fit


def main() -> None:
    args = _arguments()
    dataset = load_graphs(args.dataset, args.data_dir)
    if not bool(((dataset.stacked["x"] == 0) | (dataset.stacked["x"] == 1)).all()):
        dataset = Standardize().fit(dataset, range(len(dataset))).transform(dataset)
    if args.batches is not None:
        order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0))
        dataset = dataset[order[: args.batches * args.batch_size]]
    if args.structure == "shortest_path":
        dataset = dataset.map(ShortestPaths())
    model = _model(args, dataset)
    print(f"{dataset.name}: {len(dataset)} graphs, {args.templates} templates of {model.config.template_nodes} nodes")
    _train(model, dataset, args, epochs=args.warm_up)
    start = time.perf_counter()
    _train(model, dataset, args, epochs=args.epochs)
    seconds = (time.perf_counter() - start) / args.epochs
    print(f"{seconds:.3f} s per epoch, {1e6 * seconds / len(dataset) / args.templates:.0f} µs per pair")
    _print_shares(model, dataset, args)
    print(f"peak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="MUTAG")
    parser.add_argument("--data-dir")
    parser.add_argument("--structure", choices=["adjacency", "shortest_path"], default="adjacency")
    parser.add_argument("--templates", type=int, default=8)
    parser.add_argument("--template-nodes", type=int, help="nodes per template (default: those of the median graph)")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--batches", type=int, help="use only this many batches of graphs")
    parser.add_argument("--precision", choices=["float64", "float32", "bf16"], default="float64")
    parser.add_argument("--warm-up", type=int, default=1, help="number of epochs before the measurement")
    parser.add_argument("--epochs", type=int, default=5)
    return parser.parse_args()


def _model(args: argparse.Namespace, dataset: GraphDataset) -> TFGWModel:
    median = int(statistics.median(graph.num_nodes for graph in dataset))
    torch.manual_seed(0)
    config = TFGWConfig(
        in_channels=dataset.num_node_features,
        out_channels=dataset.num_classes,
        num_templates=args.templates,
        template_nodes=args.template_nodes or median,
        num_layers=args.layers,
        width=args.width,
        structure=args.structure,
    )
    return TFGWModel(config).init_templates(dataset)


def _train(model: TFGWModel, dataset: GraphDataset, args: argparse.Namespace, *, epochs: int) -> None:
    config = TrainConfig(epochs=epochs, batch_size=args.batch_size, precision=args.precision)
    fit(model, dataset, config=config)


def _print_shares(model: TFGWModel, dataset: GraphDataset, args: argparse.Namespace) -> None:
    """Profile one more epoch. Time outside PyTorch operators is Python code and waiting."""
    start = time.perf_counter()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        _train(model, dataset, args, epochs=1)
    total = 1e6 * (time.perf_counter() - start)
    events = profiler.key_averages()
    solver = sum(event.self_cpu_time_total for event in events if "tfgw" in event.key)
    networks = sum(event.self_cpu_time_total for event in events) - solver
    shares = {"solver": solver, "networks": networks, "Python": total - solver - networks}
    print(", ".join(f"{name} {100 * part / total:.0f} %" for name, part in shares.items()))


if __name__ == "__main__":
    main()

"""Time and memory of one solve by number of nodes, for sparse graphs (|E| ∝ n) and templates of 20 nodes.

    python benchmarks/scaling.py

Each size runs in a separate process, to measure its peak memory.
"""

import argparse
import multiprocessing
import resource
import time

SIZES = (20, 50, 100, 250, 500, 1000, 2000, 4000)


def measure(nodes: int, templates: int, threads: int, queue: multiprocessing.Queue) -> None:
    import torch

    from tfgw import ot as tot

    torch.manual_seed(nodes)
    edges = torch.randint(nodes, (2, 2 * nodes))
    edges = torch.cat([edges, edges.flip(0)], 1).unique(dim=1)  # mean degree about 4
    graph = tot.GraphBatch(torch.randn(nodes, 8, dtype=torch.float64), edge_index=edges[:, edges[0] != edges[1]])
    structure = (torch.rand(templates, 20, 20) < 0.2).double().triu(1)
    target = tot.Templates(torch.randn(templates, 20, 8, dtype=torch.float64), structure + structure.mT)
    tiny = tot.GraphBatch(graph.x[:2], edge_index=torch.tensor([[0, 1], [1, 0]]))
    tot.fgw(tiny, target, 0.5, plans=None)  # warm-up
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    result = tot.fgw(graph, target, 0.5, plans=None, num_threads=threads)
    elapsed = time.perf_counter() - started
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    queue.put((elapsed / templates, grown / 1024, int(edges.shape[1]), float(result.iterations.double().mean())))


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--templates", type=int, default=8)
    p.add_argument("--threads", type=int, default=1)
    args = p.parse_args()
    print("| nodes | edges | ms per pair | µs per edge | iterations | memory grown, MB | n × n matrix, MB |")
    print("|---|---|---|---|---|---|---|")
    context = multiprocessing.get_context("spawn")
    for nodes in SIZES:
        queue = context.Queue()
        process = context.Process(target=measure, args=(nodes, args.templates, args.threads, queue))
        process.start()
        seconds, grown, edges, iterations = queue.get()
        process.join()
        print(
            f"| {nodes} | {edges} | {1e3 * seconds:.3f} | {1e6 * seconds / edges:.2f} | {iterations:.1f} "
            f"| {grown:.1f} | {nodes**2 * 8 / 2**20:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

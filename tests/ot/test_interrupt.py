"""A long solve or search can be stopped, and other Python threads run meanwhile."""

import signal
import subprocess
import sys
import threading
import time

import pytest
import torch

from tfgw.ot import GraphBatch, Templates, fgw

SCRIPT = """
import signal, sys, torch
from tfgw.ot import GraphBatch, Templates, fgw

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background hands it down ignored
kind, threads = sys.argv[1], int(sys.argv[2])
graphs, nodes = {many}[kind]
generator = torch.Generator().manual_seed(0)
total = graphs * nodes
x = torch.randn(total, 4, generator=generator, dtype=torch.float64)
batch = torch.arange(graphs).repeat_interleave(nodes)
structure = torch.rand(total * nodes, generator=generator, dtype=torch.float64)
templates = Templates(
    torch.randn(24, 60, 4, generator=generator, dtype=torch.float64),
    torch.rand(24, 60, 60, generator=generator, dtype=torch.float64),
)
problem = GraphBatch(x, batch=batch, structure=structure)
fgw(GraphBatch(x[:5], structure=structure[:25]), templates, 0.5)
print("started", flush=True)
try:
    fgw(problem, templates, 0.9, num_threads=threads)
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
SIZES = {"many graphs": (100, 300), "few large graphs": (2, 2000)}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", SIZES)
def test_ctrl_c_stops_a_solve_within_a_second(kind: str, threads: int) -> None:
    check_that_ctrl_c_stops(SCRIPT.replace("{many}", repr(SIZES)), kind, str(threads))


ORDER_SCRIPT = """
import signal, sys, torch
from tfgw.ot import GraphBatch, canonical_order

signal.signal(signal.SIGINT, signal.default_int_handler)
kind = sys.argv[1]
if kind == "hard graph":  # a projective plane: points and lines that nothing tells apart
    q = 11
    points = [(1, a, b) for a in range(q) for b in range(q)] + [(0, 1, a) for a in range(q)] + [(0, 0, 1)]
    place = torch.tensor(points)
    edges = ((place @ place.T) % q == 0).nonzero().T + torch.tensor([[0], [len(points)]])
    graphs = GraphBatch(torch.zeros(2 * len(points), 0), edge_index=torch.cat([edges, edges.flip(0)], dim=1))
else:  # rings of one size: the search is short, and there are many
    nodes, count = 400, 8_000  # five seconds on a fast machine
    next_node = (nodes * torch.arange(count).view(-1, 1) + (torch.arange(nodes) + 1) % nodes).flatten()
    edges = torch.stack([torch.arange(nodes * count), next_node])
    batch = torch.arange(count).repeat_interleave(nodes)
    graphs = GraphBatch(torch.zeros(nodes * count, 0), batch=batch, edge_index=torch.cat([edges, edges.flip(0)], dim=1))
print("started", flush=True)
try:
    canonical_order(graphs)
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("kind", ["hard graph", "many graphs"])
def test_ctrl_c_stops_a_search_for_canonical_order_within_a_second(kind: str) -> None:
    check_that_ctrl_c_stops(ORDER_SCRIPT, kind)


def check_that_ctrl_c_stops(script: str, *arguments: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert child.stdout.readline() == "started\n"
        time.sleep(0.7)
        sent = time.perf_counter()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert time.perf_counter() - sent < 1
    finally:
        child.kill()
        child.wait()


def test_other_threads_run_during_a_solve() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3600, 4, generator=generator, dtype=torch.float64)
    batch = torch.arange(12).repeat_interleave(300)
    structure = torch.rand(12 * 300**2, generator=generator, dtype=torch.float64)
    templates = Templates(
        torch.randn(9, 60, 4, generator=generator, dtype=torch.float64),
        torch.rand(9, 60, 60, generator=generator, dtype=torch.float64),
    )
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.005):
            ticks.append(time.perf_counter())

    clock = threading.Thread(target=tick)
    clock.start()
    begin = time.perf_counter()
    fgw(GraphBatch(x, batch=batch, structure=structure), templates, 0.9, max_iter=3, num_threads=1)
    end = time.perf_counter()
    done.set()
    clock.join()
    assert end - begin > 0.1  # long enough to tell
    assert sum(begin < t < end for t in ticks) > 0.2 * (end - begin) / 0.005

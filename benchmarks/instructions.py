"""Instructions per (graph, template) pair, counted by callgrind, which detects regressions even on a noisy machine.

    python benchmarks/instructions.py --data-dir FOLDER

Requires valgrind. The count is that of the solver on one thread, with AVX2 if the processor supports it.
"""

from common import Case, make_case, parser, table  # isort: skip  (pins BLAS threads first)

import re
import shutil
import subprocess
import sys
import tempfile

import torch

from tfgw.ot import GraphBatch
from tfgw.ot.checks import problem_of

INNER = """
import sys
import torch
from tfgw.ot import _core
from tfgw.ot.problem import PLANS, RESULTS, Problem

problem = Problem._make(torch.load(sys.argv[1]))
_core.solve(problem, RESULTS | PLANS, problem.weight_tolerance, 1)
"""
COUNTED = ("tfgw::prepare(*", "tfgw::solve_batch(*")


def count(case: Case, folder: str) -> int:
    """Return the instructions of one solve, without the overhead."""
    batch = case.batch
    problem = problem_of(GraphBatch(batch.x, batch=batch.batch, edge_index=batch.edge_index), case.templates, 0.5)
    torch.save(list(problem), f"{folder}/problem.pt")
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--collect-atstart=no"]
    command += [f"--toggle-collect={function}" for function in COUNTED]
    command += [sys.executable, "-c", INNER, f"{folder}/problem.pt"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    assert collected is not None
    return int(collected[1])


def main() -> None:
    p = parser(__doc__)
    p.set_defaults(graphs=16)
    args = p.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("valgrind: not found; install it to count instructions")
    rows = []
    for name in args.datasets:
        case = make_case(name, args)
        with tempfile.TemporaryDirectory() as folder:
            total = count(case, folder)
        rows.append([name, f"{total / (case.batch.num_graphs * args.templates):,.0f}"])
    print(f"{args.graphs} graphs × {args.templates} templates\n")
    table(["dataset", "instructions per pair"], rows)


if __name__ == "__main__":
    main()

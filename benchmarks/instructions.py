"""Instructions per (graph, template) pair, counted by callgrind: a regression shows even on a noisy machine.

    python benchmarks/instructions.py --data-dir FOLDER

Needs valgrind. Counted is what the solver executes on one thread, with the AVX2 loops where the processor has them.
"""

from common import make_case, parser, table  # isort: skip  (pins BLAS threads first)

import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from tfgw.ot import _core

INNER = """
import sys, importlib.util
import numpy as np
spec = importlib.util.spec_from_file_location("_core", sys.argv[1])
core = importlib.util.module_from_spec(spec)
spec.loader.exec_module(core)
z = dict(np.load(sys.argv[2]))
K, m = z["template_weights"].shape
B, N = len(z["ptr"]) - 1, len(z["x"])
problem = core.Problem(edge_weight=None, dense=None, cost=None, **z)
pairs = lambda t=float: np.zeros((B, K), dtype=t)
core.solve(problem, start=None, max_iter=1000, tol=1e-9, starts=1, start_kinds=1, threads=1, distance=pairs(),
           structure_cost=pairs(), feature_cost=pairs(), gap=pairs(), iterations=pairs(np.int32),
           status=pairs(np.int32), plan=np.empty((N, K, m)), row_potential=np.empty((N, K)),
           col_potential=np.empty((B, K, m)))
"""


def count(case, folder: str) -> int:
    """Instructions of one solve, less everything around it."""
    sizes = np.bincount(case.batch.batch.numpy())
    arrays = {
        "ptr": np.concatenate([[0], sizes.cumsum()]),
        "x": case.batch.x.numpy(),
        "weights": np.repeat(1 / sizes, sizes),
        "edge_index": case.batch.edge_index.contiguous().numpy(),
        "template_structure": case.templates.structure.numpy(),
        "template_x": case.templates.features.contiguous().numpy(),
        "template_weights": np.full(case.templates.features.shape[:2], 1 / case.templates.features.shape[1]),
        "alpha": np.full(len(case.templates.features), 0.5),
    }
    np.savez(f"{folder}/problem.npz", **arrays)
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--collect-atstart=no"]
    command += [
        "--toggle-collect=*solve_batch*",
        sys.executable,
        "-c",
        INNER,
        _core.__file__,
        f"{folder}/problem.npz",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


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

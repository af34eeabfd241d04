"""Time and page size of ``tfgw report`` for many molecule-like graphs.

python benchmarks/report.py --graphs 5000
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from stream import append_tu, molecules


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--graphs", type=int, default=5000)
    p.add_argument("--nodes", type=int, default=20)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as name:
        data, run = Path(name) / "molecules", Path(name) / "run"
        tables = molecules(args.graphs, args.nodes, np.random.default_rng(0))
        assert tables.node_labels is not None
        append_tu(tables, data, 0, 0)
        mean_label = tables.node_labels.reshape(args.graphs, args.nodes).mean(1)
        np.savetxt(data / "molecules_graph_labels.txt", mean_label > np.median(mean_label), fmt="%d")
        tfgw = [sys.executable, "-m", "tfgw"]
        options = ["--epochs", "1", "--no-report", "--output", str(run)]
        subprocess.run([*tfgw, "train", "--dataset", str(data), *options], check=True, capture_output=True)
        start = time.perf_counter()
        subprocess.run([*tfgw, "report", str(run)], check=True, capture_output=True)
        seconds, size = time.perf_counter() - start, (run / "report.html").stat().st_size
    print(f"{args.graphs} graphs of {args.nodes} nodes: {seconds:.1f} s, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

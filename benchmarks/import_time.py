"""Import times in a new process, compared with `import torch`.

python benchmarks/import_time.py
"""

import argparse
import statistics
import subprocess
import sys
import time

MODULES = ("torch", "tfgw", "tfgw.ot", "torch_geometric.data", "tfgw.nn", "tfgw.train", "tfgw.estimators")


def seconds(module: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return time.perf_counter() - start


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--repeats", type=int, default=7, help="processes per module (default: 7)")
    args = p.parse_args()
    for module in MODULES:  # warm up the file cache
        seconds(module)
    # Interleave the modules, so that load of the machine affects all of them.
    rounds = [{module: seconds(module) for module in MODULES} for _ in range(args.repeats)]
    print("| import | median seconds | relative to torch |\n|---|---|---|")
    for module in MODULES:
        median = statistics.median(times[module] for times in rounds)
        relative = statistics.median(times[module] / times["torch"] for times in rounds)
        print(f"| `{module}` | {median:.2f} | {relative:.2f}× |")


if __name__ == "__main__":
    main()

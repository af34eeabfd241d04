"""Machine code of all kernels as files of a package, so that its users need no compiler. Needs CuPy, but no GPU.

python -m tfgw.ot.backends.cuda.precompile
"""

import argparse
import lzma
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tfgw.ot.backends.cuda.compile import Architecture, compile_unit, compiler_version
from tfgw.ot.backends.cuda.kernel_limits import SIZE_CLASSES
from tfgw.ot.backends.cuda.machine_code import SHIPPED, SHIPPED_VERSION, shipped_name
from tfgw.ot.backends.cuda.units import LAYERS, Unit, units_of

ARCHITECTURES = (80, 86, 89, 90, 100, 120)


def main(argv: Sequence[str] | None = None) -> int:
    """Write one compressed file per unit, size class and architecture."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--architectures", type=int, nargs="+", default=ARCHITECTURES, help="compute capabilities times 10")
    p.add_argument("--classes", type=int, nargs="+", choices=SIZE_CLASSES, default=SIZE_CLASSES, help="template nodes")
    p.add_argument("--output", type=Path, default=SHIPPED, help="folder (default: where the package looks for them)")
    args = p.parse_args(argv)
    version = ".".join(map(str, SHIPPED_VERSION))
    if compiler_version() != version:
        p.error(f"needs NVRTC {version}, found {compiler_version()}: pip install 'nvidia-cuda-nvrtc=={version}.*'")
    args.output.mkdir(parents=True, exist_ok=True)
    wanted = [(u, c, Architecture(a)) for a in args.architectures for c in args.classes for u in units_of(c)]
    wanted += [(LAYERS, SIZE_CLASSES[0], Architecture(a)) for a in args.architectures]
    started = time.perf_counter()
    with ThreadPoolExecutor() as threads:
        sizes = list(threads.map(lambda one: _write(args.output, *one), wanted))
    seconds = time.perf_counter() - started
    print(f"{len(sizes)} files, {sum(sizes) / 2**20:.1f} MB, {seconds:.0f} s, in {args.output}")
    return 0


def _write(folder: Path, unit: Unit, columns: int, architecture: Architecture) -> int:
    data = lzma.compress(compile_unit(unit, columns, architecture))
    return (folder / shipped_name(unit, columns, architecture)).write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())

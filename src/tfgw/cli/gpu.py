"""``tfgw gpu``: check whether GPUs can be used."""

import argparse
import sys
from dataclasses import asdict

from tfgw.cli.output import Answer, table
from tfgw.ot.gpu_check import CheckedKernels, Setup, check_kernels, find_setup

ORIGINS = {"package": "came with tfgw", "cache": "compiled earlier", "compiler": "compiled"}


def run(args: argparse.Namespace) -> Answer:
    """Report the setup, load or compile the kernels, and compare them with the CPU core."""
    setup = find_setup()
    print(_found(setup), file=sys.stderr, flush=True)
    checked: list[CheckedKernels] = []
    if setup.missing is None:
        for kernels in check_kernels(args.classes):
            checked.append(kernels)
            print(_progress(kernels), file=sys.stderr, flush=True)
    ready = setup.missing is None and all(kernels.agrees for kernels in checked)
    data = asdict(setup) | {
        "devices": [device._asdict() for device in setup.devices],
        "kernels": [kernels._asdict() | {"agrees": kernels.agrees} for kernels in checked],
        "ready": ready,
    }
    return Answer(data, _verdict(setup, checked), code=0 if ready else 1)


def _found(setup: Setup) -> str:
    rows = [
        ["PyTorch", f"{setup.torch}, CUDA {setup.torch_cuda or 'none'}"],
        ["driver", f"up to CUDA {setup.driver}" if setup.driver else "none"],
        ["CuPy", f"{setup.cupy}, NVRTC {setup.nvrtc or 'none'}" if setup.cupy else "none"],
    ]
    for device in setup.devices:
        capability = ".".join(map(str, device.capability))
        room = f"{device.memory / 2**30:.0f} GiB, {device.shared_memory / 2**10:.0f} KiB of shared memory per block"
        about = f"{device.name}, compute capability {capability}, {device.multiprocessors} multiprocessors, {room}"
        rows.append([f"GPU {device.ordinal}", about])
    if not setup.devices:
        rows.append(["GPU", "none"])
    return table(rows)


def _progress(kernels: CheckedKernels) -> str:
    differences = f"values to {kernels.value_difference:.0e}, gradients to {kernels.gradient_difference:.0e}"
    verdict = "as on the CPU" if kernels.agrees else "NOT as on the CPU"
    where = ORIGINS[kernels.origin]
    starts = ", several starts" if kernels.several else ""
    about = f"templates of up to {kernels.columns:3} nodes{starts}"
    return f"{about}: {kernels.seconds:.1f} s ({where}), {verdict} ({differences})"


def _verdict(setup: Setup, checked: list[CheckedKernels]) -> str:
    if setup.missing is not None:
        return f"not ready: {setup.missing}"
    wrong = [str(columns) for columns in sorted({kernels.columns for kernels in checked if not kernels.agrees})]
    if wrong:
        sizes = ", ".join(wrong)
        return f"not ready: results for templates of up to {sizes} nodes differ from the CPU's; please report it"
    return f"ready: {setup.devices[0].name} gives the CPU's values and gradients"

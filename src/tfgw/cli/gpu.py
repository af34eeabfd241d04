"""``tfgw gpu``: check whether GPUs can be used."""

import argparse
import sys
from dataclasses import asdict

from tfgw.cli.output import CommandResult, table
from tfgw.nn.layer_check import CheckedLayers, check_layer_kernels
from tfgw.ot.backends.cuda.kernel_limits import SIZE_CLASSES
from tfgw.ot.gpu_check import CheckedKernels, Setup, check_kernels, find_setup

ORIGINS = {"package": "came with tfgw", "cache": "compiled earlier", "compiler": "compiled"}


def run(args: argparse.Namespace) -> CommandResult:
    """Report the setup, load or compile the kernels, and compare them with the CPU."""
    setup = find_setup()
    print(_found(setup), file=sys.stderr, flush=True)
    checked: list[CheckedKernels] = []
    layers: CheckedLayers | None = None
    if setup.missing is None:
        for kernels in check_kernels(args.classes or SIZE_CLASSES):
            checked.append(kernels)
            print(_progress(kernels), file=sys.stderr, flush=True)
        layers = check_layer_kernels()
        print(_layers_progress(layers), file=sys.stderr, flush=True)
    wrong = _wrong(checked, layers)
    ready = setup.missing is None and not wrong
    data = asdict(setup) | {
        "devices": [device._asdict() for device in setup.devices],
        "kernels": [kernels._asdict() | {"agrees": kernels.agrees} for kernels in checked],
        "layers": None if layers is None else layers._asdict() | {"agrees": layers.agrees},
        "ready": ready,
    }
    return CommandResult(data, _verdict(setup, wrong), code=0 if ready else 1)


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
    starts = ", several starts" if kernels.several else ""
    about = f"templates of up to {kernels.columns:3} nodes{starts}"
    return f"{about}: {_loaded(kernels)} ({differences})"


def _layers_progress(layers: CheckedLayers) -> str:
    differences = f"to {layers.difference:.0e}, in single precision to {layers.difference_float32:.0e}"
    return f"layers of networks: {_loaded(layers)} ({differences})"


def _loaded(kernels: CheckedKernels | CheckedLayers) -> str:
    verdict = "as on the CPU" if kernels.agrees else "NOT as on the CPU"
    return f"{kernels.seconds:.1f} s ({ORIGINS[kernels.origin]}), {verdict}"


def _wrong(checked: list[CheckedKernels], layers: CheckedLayers | None) -> list[str]:
    """Describe the results that differ from the CPU's."""
    sizes = [str(columns) for columns in sorted({kernels.columns for kernels in checked if not kernels.agrees})]
    found = [f"for templates of up to {', '.join(sizes)} nodes"] if sizes else []
    return found if layers is None or layers.agrees else [*found, "of layers of networks"]


def _verdict(setup: Setup, wrong: list[str]) -> str:
    if setup.missing is not None:
        return f"not ready: {setup.missing}"
    if wrong:
        return f"not ready: results {' and '.join(wrong)} differ from the CPU's; please report it"
    return f"ready: {setup.devices[0].name} gives the CPU's values and gradients"

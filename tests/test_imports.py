"""Imports stay light: what only parts of the package need is loaded when it is used."""

import subprocess
import sys

import pytest

# Each takes as long to load as half of PyTorch or more.
HEAVY = ("sklearn", "scipy", "lightning_fabric", "torch_geometric", "torch._dynamo", "matplotlib")


def loaded_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ended.stdout.split())


def test_the_package_alone_loads_nothing() -> None:
    assert not loaded_by("tfgw") & {"torch", "numpy", *HEAVY}


def test_the_solver_needs_pytorch_only() -> None:
    loaded = loaded_by("tfgw.ot")
    assert "torch" in loaded
    assert not loaded & set(HEAVY)


@pytest.mark.parametrize("module", ["tfgw.nn", "tfgw.datasets"])
def test_layers_and_datasets_do_not_load_what_training_needs(module: str) -> None:
    """PyTorch Geometric loads PyTorch's compiler itself."""
    loaded = loaded_by(module)
    assert "torch_geometric" in loaded
    assert not loaded & {"sklearn", "scipy", "lightning_fabric", "matplotlib"}


def test_the_parts_are_there_without_an_import_of_their_own() -> None:
    code = "import tfgw; print(tfgw.nn.TFGWPooling, tfgw.ot.fgw, tfgw.datasets.load, tfgw.estimators.TFGWClassifier)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tfgw.nn.tfgw_pooling.TFGWPooling" in ended.stdout

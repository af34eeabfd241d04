"""On the paper's own data."""

import os
from typing import Any

import pytest

from tfgw.baselines import GIN, OTGNN, DropGIN
from tfgw.datasets import load

pytestmark = pytest.mark.skipif(not os.environ.get("TFGW_DATA"), reason="TFGW_DATA names no folder with the datasets")


@pytest.mark.parametrize(("model", "parameters"), [(GIN, 29_858), (DropGIN, 44_098), (OTGNN, 30_802)])
def test_default_models_on_ptc_have_the_parameters_of_table_3(model: Any, parameters: int) -> None:
    dataset = load("PTC_MR")
    fitted = model(recipe="paper", epochs=1, accelerator="cpu", random_state=0).fit(list(dataset), dataset.y.numpy())
    assert fitted.num_parameters_ == parameters

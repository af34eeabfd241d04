"""What tests of the host's part share."""

import pytest
import torch


@pytest.fixture(params=["DLPack", "attributes"])
def ask(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How tensors are asked what they are: older versions of PyTorch have no table of DLPack's functions."""
    way: str = request.param
    if way == "attributes":
        monkeypatch.setattr(torch.Tensor, "__dlpack_c_exchange_api__", None, raising=False)
    elif not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this PyTorch has no table")
    return way

"""From the layer to native code: few Python frames, on either device."""

import sys
from typing import Any

import pytest
import torch

from tests.ot.cuda.emulation import emulated_for_eager_calls
from tfgw.nn import TFGWPooling
from tfgw.ot.backends import cpu

MOST = 4


class Native:
    """In front of native code: notes which Python functions led to it."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self.walks: list[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def solve(self, *arguments: Any) -> Any:
        frame, walk = sys._getframe(1), list[str]()
        while frame is not None:
            walk.insert(0, frame.f_code.co_qualname)
            if walk[0] == "TFGWPooling.forward":
                break
            frame = frame.f_back  # type: ignore[assignment]
        self.walks.append(walk)
        return self._native.solve(*arguments)


def call_layer() -> None:
    layer = TFGWPooling(3, 4, 5).double()
    x = torch.randn(6, 3).double()
    edge_index, batch = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]), torch.tensor([0, 0, 1, 1, 1, 1])
    layer(x, edge_index, batch)
    layer(x.requires_grad_(), edge_index, batch).sum().backward()


def test_frames_to_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    native = Native(cpu._core)
    monkeypatch.setattr(cpu, "_core", native)
    call_layer()
    assert native.walks == [["TFGWPooling.forward", "distances", "solve", "forward"]] * 2
    assert all(len(walk) <= MOST for walk in native.walks)


def test_frames_to_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = emulated_for_eager_calls(monkeypatch)
    native = Native(gpu.host)
    monkeypatch.setattr(gpu, "host", native)
    call_layer()
    assert len(native.walks) == 2
    assert all(walk[0] == "TFGWPooling.forward" and len(walk) <= MOST for walk in native.walks)

"""Compiling kernels, with a CuPy that takes as long as it is told to."""

import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from tfgw.ot.backends.cuda import compile


@pytest.mark.parametrize(("patience", "announced"), [(0.01, True), (10.0, False)])
def test_a_user_is_told_what_takes_long(
    patience: float, announced: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def get_function(name: str) -> SimpleNamespace:
        time.sleep(0.2)
        return SimpleNamespace(kernel=SimpleNamespace(ptr=7))

    cupy = SimpleNamespace(
        cuda=SimpleNamespace(Device=lambda index: nullcontext()),
        RawModule=lambda **options: SimpleNamespace(get_function=get_function),
    )
    monkeypatch.setattr(compile, "load_cupy", lambda: cupy)
    monkeypatch.setattr(compile, "PATIENCE", patience)
    monkeypatch.setattr(compile, "_loaded", [])
    compile._module.cache_clear()
    try:
        assert compile.kernel.__wrapped__(0, "tfgw_index", 32) == 7
    finally:
        compile._module.cache_clear()
    text = "tfgw: compiling the GPU kernels for templates of up to 32 nodes, once: about half a minute"
    assert [record.getMessage() for record in caplog.records] == ([text] if announced else [])

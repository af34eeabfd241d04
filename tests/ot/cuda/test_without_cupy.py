"""What a user reads who has a GPU, but not the extra that compiles for it."""

import sys

import pytest

from tfgw.ot.backends.cuda import compile as cuda


def test_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setitem(sys.modules, "cupy.cuda", None)
    cuda.load_nvrtc.cache_clear()
    with pytest.raises(ImportError, match=r"this GPU needs CuPy.*pip install 'tfgw\[cuda\]'"):
        cuda.load_nvrtc()

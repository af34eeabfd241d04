"""What a user reads who has a GPU, but not the extra that it needs."""

import sys

import pytest

from tfgw.ot.backends.cuda import compile as cuda


def test_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    cuda.load_cupy.cache_clear()
    with pytest.raises(ImportError, match=r"tensors on a GPU need CuPy.*pip install 'tfgw\[cuda\]'"):
        cuda.load_cupy()

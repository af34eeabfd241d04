"""Where layers can be compiled."""

import pytest
import torch

traces_named_tuples = pytest.mark.skipif(
    torch.__version__.startswith("2.8."), reason="PyTorch 2.8 cannot trace methods of named tuples"
)

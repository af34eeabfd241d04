"""Every example of the gallery runs, draws, and warns of nothing."""

import runpy
import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

import tfgw.estimators  # here, as PyTorch Geometric's own import warns
import tfgw.plot
import tfgw.train  # noqa: F401

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("plot_*.py"))


def test_the_gallery_has_at_least_ten() -> None:
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with mpl.rc_context({"backend": "agg"}), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = runpy.run_path(str(example))
    plt.close("all")
    assert any(isinstance(value, Figure) for value in found.values())

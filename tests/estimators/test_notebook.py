"""What notebooks show of an estimator."""

import sys

import pytest

from tests.estimators.small import fitted
from tfgw.estimators import TFGWClassifier


def test_templates_are_shown_once_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Templates of" not in TFGWClassifier()._repr_html_()
    model = fitted(epochs=1)
    html = model._repr_mimebundle_()["text/html"]
    drawing = html.split("Templates of TFGWClassifier")[1]
    assert all(f">template {k}<" in drawing for k in (1, 2, 3, 4))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "Templates of" not in model._repr_html_()

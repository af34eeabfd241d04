"""``fit`` draws from generators of its own: nobody else's random numbers change because a model was fitted."""

import pickle
import random
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

from tests.baselines.small import ALL, labelled_graphs, name_of
from tests.estimators.small import QUICK
from tfgw.estimators import TFGWClassifier, TFGWRegressor, TFGWTransformer

EVERY = [
    *ALL,
    TFGWClassifier(**QUICK),
    TFGWRegressor(**QUICK),
    TFGWTransformer(num_templates=4, random_state=0),
]


def global_states() -> bytes:
    legacy = np.random.get_state()  # noqa: NPY002  # the global one is what this is about
    return pickle.dumps((random.getstate(), legacy, torch.get_rng_state().tolist()))


@pytest.mark.parametrize("random_state", [0, None])
@pytest.mark.parametrize("model", EVERY, ids=name_of)
def test_fit_touches_no_global_random_state(model: Any, random_state: int | None) -> None:
    graphs, names = labelled_graphs()
    y = (names == "ring").astype(float) if isinstance(model, TFGWRegressor) else names
    model = clone(model).set_params(random_state=random_state)
    if "epochs" in model.get_params():
        model.set_params(epochs=2)
    before = global_states()
    model.fit(graphs, y)
    assert global_states() == before
    (model.predict if hasattr(model, "predict") else model.transform)(graphs)
    assert global_states() == before

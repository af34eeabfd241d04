"""The projections of a layer, by hand and after each step of an optimiser."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from tests.nn.graphs import random_batch
from tests.nn.layers import K, make_layer
from tfgw.nn import TFGWPooling, project_after_step


def test_project_keeps_every_parameter_in_its_set() -> None:
    def spoiled(**options: Any) -> TFGWPooling:
        layer = make_layer(**options)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.add_(torch.randn_like(parameter) * 3)
        return layer

    layer = spoiled(alpha_per_template=True)
    features = layer.template_features.clone()
    layer.project_()
    assert 0 == float(layer.structure_entries.min()) < float(layer.structure_entries.max()) == 1
    assert torch.equal(layer.template_structure, layer.template_structure.mT)
    assert float(layer.template_weights.min()) >= 0
    torch.testing.assert_close(layer.template_weights.sum(-1), torch.ones(K, dtype=torch.float64))
    assert 0 <= float(layer.alpha.min()) <= float(layer.alpha.max()) <= 1
    assert torch.equal(layer.template_features, features)
    paths = spoiled(structure="shortest_path")
    paths.project_()
    assert 0 == float(paths.structure_entries.min()) < 1 < float(paths.structure_entries.max())
    free = spoiled(structure="precomputed")
    before = free.template_structure.clone()
    free.project_()
    assert torch.equal(free.template_structure, before)


def test_project_is_idempotent_and_leaves_buffers() -> None:
    layer = make_layer(learn_templates=False, learn_weights=False, alpha=0.7)
    before = copy.deepcopy(layer.state_dict())
    layer.project_()
    assert all(torch.equal(before[name], tensor) for name, tensor in layer.state_dict().items())


def test_projection_after_every_step() -> None:
    data = random_batch()
    model = nn.ModuleDict({"first": make_layer(), "second": make_layer(1)})
    optimizer = torch.optim.SGD(model.parameters(), lr=3.0)
    handle = project_after_step(optimizer, model)

    def step() -> None:
        optimizer.zero_grad()
        sum(layer(data.x, data.edge_index, data.batch).sum() for layer in model.values()).backward()
        optimizer.step()

    for _ in range(3):
        step()
        for layer in model.values():
            torch.testing.assert_close(layer.template_weights.sum(-1), torch.ones(K, dtype=torch.float64))
            assert 0 <= float(layer.structure_entries.min()) <= float(layer.structure_entries.max()) <= 1
            assert 0 <= float(layer.alpha) <= 1
    handle.remove()
    step()
    total = model["first"].template_weights.sum(-1) - 1
    assert float(total.abs().max()) > 1e-6


def test_projection_needs_a_layer_to_project() -> None:
    model = nn.Linear(2, 3)
    with pytest.raises(ValueError, match="model: has no layer with templates"):
        project_after_step(torch.optim.SGD(model.parameters(), lr=0.1), model)

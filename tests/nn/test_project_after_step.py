"""The projections of a layer, by hand and after each step of an optimiser."""

import copy
import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn

from tests.nn.compiling import traces_named_tuples
from tests.nn.graphs import random_batch
from tests.nn.layers import K, make_layer
from tfgw.nn import TFGWPooling, project_after_step
from tfgw.nn.template_layer import project_layers_


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


def test_layers_projected_together_are_those_projected_alone() -> None:
    """Bit for bit: three of one kind, one of another size, one with fixed weights, and one that projects otherwise."""

    class Halving(TFGWPooling):
        def project_(self) -> None:
            with torch.no_grad():
                self.template_weights.mul_(0.5)

    torch.manual_seed(0)
    layers: list[TFGWPooling] = [
        *(TFGWPooling(3, templates, 5).double() for templates in (2, 4, 6)),
        TFGWPooling(3, 2, 7, alpha_per_template=True).double(),
        TFGWPooling(3, 2, 5, learn_weights=False).double(),
        Halving(3, 2, 5).double(),
    ]
    with torch.no_grad():
        for parameter in (p for layer in layers for p in layer.parameters()):
            parameter.add_(torch.randn_like(parameter))
    alone = copy.deepcopy(layers)
    for layer in alone:
        layer.project_()
    project_layers_(layers)
    for one, other in zip(layers, alone, strict=True):
        assert all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in one.state_dict().items())


def test_projection_needs_a_layer_to_project() -> None:
    model = nn.Linear(2, 3)
    with pytest.raises(ValueError, match="model: has no template layer"):
        project_after_step(torch.optim.SGD(model.parameters(), lr=0.1), model)


def trained_weights(*, ask: bool, compiled: bool = False, **options: Any) -> dict[str, torch.Tensor]:
    """Weights after some steps of a loop that asks for the projection, or forgets it."""
    data = random_batch()
    layer = make_layer(**options)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.3)
    if ask:
        project_after_step(optimizer, layer)
    forward = torch.compile(layer, backend="aot_eager", fullgraph=True) if compiled else layer
    for _ in range(4):
        optimizer.zero_grad()
        for _ in range(2):  # gradients of two passes add up, and neither pass changes what the other has saved
            forward(data.x, data.edge_index, data.batch, batch_size=int(data.batch.max()) + 1).sum().backward()
        optimizer.step()
    return copy.deepcopy(layer.state_dict())


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=traces_named_tuples)])
def test_a_loop_that_forgets_the_projection_trains_as_one_that_asks_for_it(compiled: bool) -> None:
    expected = trained_weights(ask=True, alpha_per_template=True)
    found = trained_weights(ask=False, compiled=compiled, alpha_per_template=True)
    assert all(torch.equal(expected[name], tensor) for name, tensor in found.items())
    assert float(found["structure_entries"].min()) == 0  # the projection had something to do


def test_only_layers_of_the_optimiser_are_projected() -> None:
    """Also layers that are copies, and not those whose loop took its hook away for this optimiser."""
    stepped, other, copied = make_layer(), make_layer(), copy.deepcopy(make_layer())
    with torch.no_grad():
        for layer in (stepped, other, copied):
            layer.template_weights.fill_(2.0)
    optimizer = torch.optim.SGD([*stepped.parameters(), *copied.parameters()], lr=0.1)
    optimizer.step()
    for layer in (stepped, copied):
        torch.testing.assert_close(layer.template_weights.sum(-1), torch.ones(K, dtype=torch.float64))
    assert bool((other.template_weights == 2).all())
    project_after_step(optimizer, stepped).remove()
    with torch.no_grad():
        stepped.template_weights.fill_(2.0)
    optimizer.step()
    assert bool((stepped.template_weights == 2).all())
    torch.optim.Adam(stepped.parameters()).step()
    torch.testing.assert_close(stepped.template_weights.sum(-1), torch.ones(K, dtype=torch.float64))


def test_layers_are_not_kept_alive_to_be_projected() -> None:
    layer = make_layer()
    alive = weakref.ref(layer)
    del layer
    gc.collect()
    assert alive() is None

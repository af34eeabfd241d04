import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils import parametrize

from tests.nn.compiling import traces_named_tuples
from tests.nn.graphs import CHANNELS, SIZES, random_batch, random_structure
from tests.nn.layers import K, M, make_layer
from tfgw import ot
from tfgw.nn import TFGWPooling, project_after_step, tfgw_pooling
from tfgw.nn.batched_structure import batched_shortest_paths
from tfgw.nn.concurrent_solves import solving_at_once
from tfgw.ot.problem import Problem


def random_weights(seed: int, *, zeros: bool = False) -> Tensor:
    weights = 0.2 + torch.rand(K, M, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    if zeros:
        weights[:, [1, 4]] = 0
    return weights / weights.sum(-1, keepdim=True)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"structure": "shortest_path", "alpha": 0.25},
    {"structure": "precomputed", "directed": True, "learn_weights": False},
    {"directed": True, "alpha_per_template": True, "alpha_init": 0.3},
    {"alpha": torch.tensor([0.1, 0.5, 1.0]), "learn_templates": False, "learn_weights": False},
    {"alpha": 0.0, "alpha_per_template": True, "n_starts": 3, "max_iter": 50, "tol": 1e-7, "num_threads": 1},
    {"n_starts": 2, "start_kinds": ["anchored"]},
    {"free_diagonal": True},
    {"training_tol": 1e-3},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_repr_rebuilds_the_layer(options: dict[str, Any]) -> None:
    layer = make_layer(**options)
    again = eval(repr(layer), {"TFGWPooling": TFGWPooling, "torch": torch}).double()
    assert repr(again) == repr(layer)
    assert {n: p.shape for n, p in again.named_parameters()} == {n: p.shape for n, p in layer.named_parameters()}
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again.template_structure, layer.template_structure)


def test_kinds_of_starts_reach_the_solver() -> None:
    data = random_batch()
    layers = [make_layer(start_kinds=[kind]) for kind in ("uniform", "anchored")]
    with torch.no_grad():
        found = [layer(data.x, data.edge_index, data.batch) for layer in layers]
    assert not torch.equal(*found)
    with pytest.raises(ValueError, match="start_kinds: 'perturbed' alone has nothing to begin with"):
        make_layer(start_kinds=["perturbed"])


def test_the_tolerance_of_training_applies_in_training_mode_only() -> None:
    data = random_batch()
    exact = make_layer()
    hasty = make_layer(training_tol=float("inf"))  # stops at the first plan, which is that of one iteration at most
    hasty.load_state_dict(exact.state_dict())
    with torch.no_grad():
        trained, wanted = hasty(data.x, data.edge_index, data.batch), exact(data.x, data.edge_index, data.batch)
        assert torch.all(trained >= wanted - 1e-12)
        assert torch.any(trained > wanted + 1e-6)
        assert torch.equal(hasty.eval()(data.x, data.edge_index, data.batch), wanted)
    assert torch.equal(hasty.train().solve(data.x, data.edge_index, data.batch).distances, wanted)
    with pytest.raises(ValueError, match=r"training_tol: must not be negative, got -0\.1"):
        make_layer(training_tol=-0.1)


@pytest.mark.parametrize("options", OPTIONS)
def test_state_dict_holds_everything(options: dict[str, Any]) -> None:
    data = random_batch()
    structure = batched_shortest_paths(data.edge_index, data.num_nodes, data.batch).double()
    layer, other = make_layer(0, **options), make_layer(1, **options)
    other.load_state_dict(layer.state_dict())
    with torch.no_grad():
        found = [net(data.x, data.edge_index, data.batch, structure=structure) for net in (layer, other)]
    assert torch.equal(*found)


def test_shapes_and_attributes() -> None:
    layer, data = make_layer(), random_batch()
    assert layer(data.x, data.edge_index, data.batch).shape == (len(SIZES), K)
    assert layer.template_structure.shape == (K, M, M)
    assert layer.template_features.shape == (K, M, CHANNELS)
    assert layer.template_weights.shape == (K, M)
    assert layer.alpha.shape == ()
    assert make_layer(alpha_per_template=True).alpha.shape == (K,)
    assert layer(data.x[: SIZES[0]], data[0].edge_index).shape == (1, K)


def test_number_of_parameters() -> None:
    """C̄ counts by its upper triangle without the diagonal, as in the paper's Table 3."""

    def count(**options: Any) -> int:
        return sum(p.numel() for p in make_layer(**options).parameters())

    features, weights, upper = K * M * CHANNELS, K * M, K * M * (M - 1) // 2
    assert count() == features + weights + upper + 1
    assert count(alpha=0.5) == features + weights + upper
    assert count(alpha_per_template=True) == features + weights + upper + K
    assert count(learn_weights=False) == features + upper + 1
    assert count(directed=True) == features + weights + 2 * upper + 1
    assert count(structure="precomputed") == features + weights + upper + K * M + 1
    assert count(free_diagonal=True) == features + weights + upper + K * M + 1
    assert count(free_diagonal=True, directed=True) == features + weights + 2 * upper + K * M + 1
    assert count(learn_templates=False, learn_weights=False, alpha=1.0) == 0


def test_all_state_follows_dtype_and_copies() -> None:
    layer = make_layer()
    assert {t.dtype for t in layer.state_dict().values()} == {torch.float64}
    single = copy.deepcopy(layer).float()
    data = random_batch()
    found = single(data.x.float(), data.edge_index, data.batch)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), layer(data.x, data.edge_index, data.batch), rtol=1e-4, atol=1e-5)
    on_meta = layer.to("meta")
    assert all(t.is_meta for t in (*on_meta.parameters(), *on_meta.buffers()))


def test_reset_parameters() -> None:
    layer = make_layer()
    before = layer.template_features.clone()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(7)
    layer.reset_parameters()
    assert not torch.equal(layer.template_features, before)
    assert layer.template_weights.tolist() == [[1 / M] * M] * K
    assert float(layer.alpha) == 0.5
    structure = layer.template_structure
    assert torch.equal(structure, structure.mT)
    assert float(structure.diagonal(dim1=1, dim2=2).abs().max()) == 0
    assert float(structure.min()) >= 0
    assert float(structure.max()) <= 1
    paths = make_layer(structure="shortest_path").template_structure
    assert float(paths[:, ~torch.eye(M, dtype=torch.bool)].min()) >= 1


@pytest.mark.parametrize("structure", ["adjacency", "shortest_path", "precomputed"])
@pytest.mark.parametrize("directed", [False, True])
def test_entries_get_the_gradient_of_all_their_places(structure: str, directed: bool) -> None:
    layer = make_layer(structure=structure, directed=directed)
    (layer.template_structure * (up := random_structure(3, K, M) + torch.arange(M))).sum().backward()
    expected = up if directed else (up + up.mT) - up * torch.eye(M)
    rows, cols = torch.triu_indices(M, M, 0 if structure == "precomputed" else 1)
    if directed:
        places = torch.ones(M, M) if structure == "precomputed" else 1 - torch.eye(M)
        rows, cols = places.nonzero().T
    torch.testing.assert_close(layer.structure_entries.grad, expected[:, rows, cols], rtol=1e-14, atol=0)


@pytest.mark.parametrize("structure", ["adjacency", "shortest_path"])
@pytest.mark.parametrize("directed", [False, True])
def test_a_free_diagonal_starts_at_0(structure: str, directed: bool) -> None:
    layer = make_layer(structure=structure, directed=directed, free_diagonal=True)
    is_diagonal = torch.eye(M, dtype=torch.bool)
    assert not layer.template_structure[:, is_diagonal].any()
    assert float(layer.template_structure[:, ~is_diagonal].min()) > 0


def test_a_free_diagonal_is_learned_and_only_clamped() -> None:
    data, layer = random_batch(), make_layer(free_diagonal=True, alpha=1.0)
    diagonal = torch.linspace(0.2, 0.9, K * M, dtype=torch.float64).reshape(K, M)
    layer.set_templates(random_structure(1, K, M) + torch.diag_embed(diagonal), layer.template_features.detach())
    layer(data.x, data.edge_index, data.batch).sum().backward()
    entry = layer._entry_index[0, :: M + 1]
    gradient = layer.structure_entries.grad[:, entry]
    plans = layer.solve(data.x, data.edge_index, data.batch).plans
    C = torch.zeros(data.num_nodes, data.num_nodes, dtype=torch.float64)
    C[data.edge_index[0], data.edge_index[1]] = 1
    matched = torch.einsum("ika,ij,jka->ka", plans, C, plans)
    expected = len(SIZES) * 2 * diagonal / M**2 - 2 * matched  # ∂C̄ = 2 C̄∘h̄h̄ᵀ − 2 TᵀCT, summed over the graphs
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-12)
    optimizer = torch.optim.SGD([layer.structure_entries], lr=1.0)
    optimizer.step()
    found = layer.template_structure.diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(found, (diagonal - expected).clamp(0, 1), rtol=1e-9, atol=1e-12)
    assert 0 < int((found > 0).sum()) <= K * M


@traces_named_tuples
def test_compiled_as_one_graph() -> None:
    data, layer = random_batch(), make_layer()

    def step(call: Callable[..., Tensor]) -> tuple[Tensor, list[Tensor | None]]:
        layer.zero_grad()
        distances = call(data.x, data.edge_index, data.batch, batch_size=len(SIZES))
        distances.square().sum().backward()
        return distances.detach(), [p.grad for p in layer.parameters()]

    (eager, grads), (traced, traced_grads) = (
        step(layer),
        step(torch.compile(layer, backend="aot_eager", fullgraph=True)),
    )
    torch.testing.assert_close(traced, eager, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(traced_grads, grads, rtol=1e-12, atol=1e-14)


def test_templates_of_one_node() -> None:
    data, layer = random_batch(), TFGWPooling(CHANNELS, K, 1).double()
    assert layer.structure_entries.shape == (K, 0)
    assert torch.equal(layer.template_structure, torch.zeros(K, 1, 1, dtype=torch.float64))
    layer.set_templates(torch.zeros(K, 1, 1), torch.ones(K, 1, CHANNELS))
    distances = layer(data.x, data.edge_index, data.batch)
    distances.sum().backward()
    assert layer.template_features.grad.abs().min() > 0
    edges = torch.bincount(data.batch[data.edge_index[0]], minlength=len(SIZES)) / torch.tensor(SIZES) ** 2
    with torch.no_grad():
        layer.alpha.fill_(1)
        torch.testing.assert_close(
            layer(data.x, data.edge_index, data.batch), edges.double()[:, None].expand(-1, K)
        )  # the sum of C² over n²


@pytest.mark.parametrize("free_diagonal", [False, True])
@pytest.mark.parametrize("structure", ["adjacency", "shortest_path", "precomputed"])
@pytest.mark.parametrize("directed", [False, True])
def test_set_templates_round_trip(structure: str, directed: bool, free_diagonal: bool) -> None:
    layer = make_layer(structure=structure, directed=directed, free_diagonal=free_diagonal)
    C = random_structure(1, K, M)
    if directed:
        C = C * torch.linspace(0.5, 1, M, dtype=torch.float64)
    if free_diagonal or structure == "precomputed":
        C = C + torch.eye(M, dtype=torch.float64)
    features = torch.randn(K, M, CHANNELS, dtype=torch.float64)
    weights = random_weights(2, zeros=True)
    layer.set_templates(C, features, weights)
    assert torch.equal(layer.template_structure, C)
    assert torch.equal(layer.template_features, features)
    assert torch.equal(layer.template_weights, weights)
    assert layer.live_nodes.tolist() == [M - 2] * K
    layer.set_templates(C, features)
    assert layer.template_weights.tolist() == [[1 / M] * M] * K


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"structure": torch.zeros(K, M, M - 1)}, "structure: expected shape"),
        ({"structure": torch.rand(K, M, M).triu(1)}, "structure: templates must be symmetric"),
        ({"structure": torch.eye(M).expand(K, M, M)}, "structure: the diagonal must be 0"),
        ({"structure": torch.full((K, M, M), float("inf")) * (1 - torch.eye(M))}, "structure: "),
        ({"features": torch.zeros(K, M, CHANNELS + 1)}, "features: expected shape"),
        (
            {"features": torch.full((K, M, CHANNELS), float("nan"))},
            "features: has an entry that is not finite",
        ),
        ({"weights": torch.full((K, M), 1.0)}, "weights: must be non-negative and sum to 1 for each template"),
        (
            {"weights": torch.eye(K, M) * 2 - torch.eye(K, M).roll(1, 1)},
            "weights: must be non-neg",
        ),
        ({"weights": torch.full((K, M - 1), 1 / (M - 1))}, "weights: expected shape"),
    ],
)
def test_bad_templates_are_refused(bad: dict[str, Tensor], message: str) -> None:
    good = {"structure": torch.zeros(K, M, M), "features": torch.zeros(K, M, CHANNELS), "weights": None}
    with pytest.raises(ValueError, match=message):
        make_layer().set_templates(**{**good, **bad})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"structure": "laplacian"}, "structure: must be one of adjacency, shortest_path, precomputed"),
        ({"alpha": 1.1}, r"alpha: must be in \[0, 1\]"),
        ({"alpha": torch.rand(K + 1)}, "alpha: expected one or 3 numbers"),
        ({"alpha_init": -0.1}, r"alpha_init: must be in \[0, 1\]"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_layer(**options)


@pytest.mark.parametrize("name", ["num_templates", "template_nodes"])
def test_bad_sizes_are_refused(name: str) -> None:
    sizes = {"in_channels": CHANNELS, "num_templates": K, "template_nodes": M, name: 0}
    with pytest.raises(ValueError, match=f"{name}: must be at least 1"):
        TFGWPooling(**sizes)


def test_distances_are_those_of_the_solver() -> None:
    layer, data = make_layer(), random_batch()
    found = ot.fgw(
        ot.GraphBatch(data.x, batch=data.batch, edge_index=data.edge_index),
        ot.Templates(layer.template_features, layer.template_structure, layer.template_weights),
        layer.alpha,
    )
    assert torch.equal(layer(data.x, data.edge_index, data.batch), found.distances)
    solved = layer.solve(data.x, data.edge_index, data.batch)
    assert torch.equal(solved.plans, found.plans)


def test_empty_graphs_at_the_end_have_rows_of_zeros() -> None:
    layer, data = make_layer(), random_batch()
    longer = layer(data.x, data.edge_index, data.batch, batch_size=len(SIZES) + 2)
    assert torch.equal(longer[:-2], layer(data.x, data.edge_index, data.batch))
    assert longer[-2:].tolist() == [[0.0] * K] * 2


def test_an_empty_graph_elsewhere_is_refused() -> None:
    layer, data = make_layer(), random_batch()
    with pytest.raises(ValueError, match="batch: graph 2 has no nodes"):
        layer(data.x, data.edge_index, data.batch + (data.batch >= 2))


def test_batch_equals_single() -> None:
    layer, data = make_layer(), random_batch()
    together = layer(data.x, data.edge_index, data.batch)
    for b, graph in enumerate(data.to_data_list()):
        assert torch.equal(layer(graph.x, graph.edge_index)[0], together[b])


def test_shortest_paths_on_the_fly_equal_given_ones() -> None:
    layer, data = make_layer(structure="shortest_path"), random_batch()
    structure = batched_shortest_paths(data.edge_index, data.num_nodes, data.batch).double()
    fly = layer(data.x, data.edge_index, data.batch)
    assert torch.equal(layer(data.x, batch=data.batch, structure=structure), fly)
    adjacency = make_layer(structure="adjacency")
    adjacency.set_templates(layer.template_structure, layer.template_features)
    assert torch.equal(adjacency(data.x, batch=data.batch, structure=structure), fly)
    assert not torch.allclose(adjacency(data.x, data.edge_index, data.batch), fly)


def test_edge_weights_are_the_structure_or_the_lengths() -> None:
    data = random_batch()
    lengths = 1 + data.edge_index.sum(0) % 3 / 2.0
    adjacency, paths = make_layer(), make_layer(structure="shortest_path")
    C = batched_shortest_paths(data.edge_index, data.num_nodes, data.batch, lengths).double()
    found = paths(data.x, data.edge_index, data.batch, edge_weight=lengths)
    assert torch.equal(found, paths(data.x, batch=data.batch, structure=C))
    weighted = adjacency(data.x, data.edge_index, data.batch, edge_weight=lengths.double())
    assert not torch.allclose(weighted, adjacency(data.x, data.edge_index, data.batch))


def test_precomputed_structure_is_needed_in_every_call() -> None:
    layer, data = make_layer(structure="precomputed"), random_batch()
    structure = batched_shortest_paths(data.edge_index, data.num_nodes, data.batch).double()
    assert layer(data.x, batch=data.batch, structure=structure).shape == (len(SIZES), K)
    with pytest.raises(ValueError, match="structure: required"):
        layer(data.x, data.edge_index, data.batch)
    with pytest.raises(ValueError, match="edge_index: required"):
        make_layer()(data.x, batch=data.batch)


def test_directed_layer_tells_a_graph_from_its_reverse() -> None:
    layer, data = make_layer(directed=True), random_batch()
    forth = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    one, other = (layer(data.x, edges, data.batch) for edges in (forth, forth.flip(0)))
    assert not torch.allclose(one[0], other[0])
    turned = copy.deepcopy(layer)
    turned.set_templates(layer.template_structure.mT, layer.template_features)
    torch.testing.assert_close(turned(data.x, forth.flip(0), data.batch), one, rtol=1e-9, atol=1e-12)


def test_alpha_fixed_learned_and_per_template() -> None:
    data = random_batch()
    alphas = torch.tensor([0.0, 0.4, 1.0], dtype=torch.float64)
    each = [make_layer(alpha=float(a))(data.x, data.edge_index, data.batch) for a in alphas]
    fixed = make_layer(alpha=alphas)
    assert not any(name == "alpha" for name, _ in fixed.named_parameters())
    found = fixed(data.x, data.edge_index, data.batch)
    for k in range(K):
        torch.testing.assert_close(found[:, k], each[k][:, k], rtol=1e-6, atol=1e-9)  # α was float32 once
    learned = make_layer(alpha_init=0.4)
    learned(data.x, data.edge_index, data.batch).sum().backward()
    assert float(learned.alpha.grad) != 0
    several = make_layer(alpha_per_template=True, alpha_init=0.4)
    several(data.x, data.edge_index, data.batch).sum().backward()
    torch.testing.assert_close(several.alpha.grad.sum(), learned.alpha.grad)


def test_gradients_reach_every_parameter_and_the_features() -> None:
    layer, data = make_layer(), random_batch()
    x = data.x.clone().requires_grad_()
    layer(x, data.edge_index, data.batch).square().sum().backward()
    for tensor in (x, *layer.parameters()):
        assert bool(tensor.grad.isfinite().all())
        assert float(tensor.grad.abs().max()) > 0


def test_nodes_without_weight_shrink_the_solve() -> None:
    data = random_batch()
    wide, narrow = make_layer(), TFGWPooling(CHANNELS, K, M - 2).double()
    wide.set_templates(wide.template_structure, wide.template_features, random_weights(0, zeros=True))
    kept = [0, 2, 3, 5, 6, 7]
    narrow.set_templates(
        wide.template_structure[:, kept][:, :, kept],
        wide.template_features[:, kept],
        wide.template_weights[:, kept],
    )
    found = wide(data.x, data.edge_index, data.batch)
    assert torch.equal(found, narrow(data.x, data.edge_index, data.batch))
    plans = wide.solve(data.x, data.edge_index, data.batch).plans
    assert float(plans[:, :, [1, 4]].abs().max()) == 0


def test_a_weightless_node_comes_back_if_that_helps() -> None:
    """The template is the graph itself, but one node has lost its weight: descent gives it back."""
    data = random_batch(sizes=(M,))
    layer = TFGWPooling(CHANNELS, 1, M, alpha=0.5, learn_templates=False).double()
    adjacency = torch.zeros(M, M, dtype=torch.float64)
    adjacency[data.edge_index[0], data.edge_index[1]] = 1
    weights = torch.full((1, M), 1 / (M - 1), dtype=torch.float64)
    weights[0, 3] = 0
    layer.set_templates(adjacency[None], data.x[None], weights)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.001)
    project_after_step(optimizer, layer)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = layer(data.x, data.edge_index).sum()
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    assert layer.template_weights[0, 3].item() == pytest.approx(1 / M, abs=0.02)
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize("side", ["template", "graph"])
@pytest.mark.parametrize("structure", ["adjacency", "shortest_path"])
def test_node_order_does_not_matter(structure: str, side: str, seed: int) -> None:
    data = random_batch(seed, sizes=(9,))
    layer = make_layer(seed, structure=structure)
    layer.set_templates(layer.template_structure, layer.template_features, random_weights(seed))
    expected = layer(data.x, data.edge_index)
    generator = torch.Generator().manual_seed(seed)
    if side == "template":
        order = torch.randperm(M, generator=generator)
        layer.set_templates(
            layer.template_structure[:, order][:, :, order],
            layer.template_features[:, order],
            layer.template_weights[:, order],
        )
        found = layer(data.x, data.edge_index)
    else:
        order = torch.randperm(9, generator=generator)
        place = order.argsort()
        found = layer(data.x[order], place[data.edge_index])
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=0)


def test_node_weights_are_passed_on() -> None:
    layer, data = make_layer(), random_batch(sizes=(5,))
    h = torch.tensor([0.5, 0.125, 0.125, 0.125, 0.125], dtype=torch.float64)
    found = layer(data.x, data.edge_index, node_weights=h)
    assert not torch.allclose(found, layer(data.x, data.edge_index))
    torch.testing.assert_close(
        layer.solve(data.x, data.edge_index, node_weights=h).plans.sum(-1), h[:, None].expand(5, K)
    )


def test_one_node_templates() -> None:
    layer = TFGWPooling(CHANNELS, 2, 1, alpha=0.5).double()
    data = random_batch(sizes=(5, 3))
    found = layer(data.x, data.edge_index, data.batch)
    features = (data.x[:, None] - layer.template_features[None, :, 0]).square().sum(-1)
    means = torch.stack([features[data.batch == b].mean(0) for b in range(2)])
    edges = torch.stack([(data.batch[data.edge_index[0]] == b).sum() for b in range(2)]) / torch.tensor([25.0, 9.0])
    torch.testing.assert_close(found, 0.5 * means + 0.5 * edges[:, None].double())


def test_refused_templates_leave_the_old_ones() -> None:
    layer = TFGWPooling(2, 3, 5)
    before = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    structure = torch.zeros(3, 5, 5)
    with pytest.raises(ValueError, match=r"^weights: must be non-negative and sum to 1 for each template"):
        layer.set_templates(structure, torch.ones(3, 5, 2), torch.full((3, 5), 5))
    with pytest.raises(ValueError, match=r"^features: expected shape"):
        layer.set_templates(structure, torch.ones(3, 5, 4))
    assert all(torch.equal(before[name], tensor) for name, tensor in layer.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_accepts_the_weights_that_the_solver_accepts(dtype: torch.dtype) -> None:
    layer, structure, features = TFGWPooling(2, 3, 5).to(dtype), torch.zeros(3, 5, 5), torch.ones(3, 5, 2)
    layer.set_templates(structure, features, torch.full((3, 5), 0.204))
    layer(torch.ones(4, 2, dtype=dtype), torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(ValueError, match=r"^weights: must be non-negative and sum to 1 for each template"):
        layer.set_templates(structure, features, torch.full((3, 5), 0.215))


def test_a_template_may_be_parametrized() -> None:
    """Then it is neither a parameter of the layer nor a buffer."""

    class Halved(torch.nn.Module):
        def forward(self, features: Tensor) -> Tensor:
            return features / 2

    layer, batch = make_layer(), random_batch()
    expected = layer(batch.x, batch.edge_index, batch.batch)
    parametrize.register_parametrization(layer, "template_features", Halved())
    with torch.no_grad():
        layer.parametrizations["template_features"].original.mul_(2)
    torch.testing.assert_close(layer(batch.x, batch.edge_index, batch.batch), expected)


@pytest.mark.parametrize("structure", ["adjacency", "shortest_path"])
def test_batch_that_is_not_sorted_is_called_that(structure: str) -> None:
    data = random_batch()
    layer = make_layer(structure=structure)
    shuffled = data.batch.flip(0)
    with pytest.raises(ValueError, match="batch: must be sorted, but node"):
        layer(data.x, data.edge_index, shuffled)


def test_the_solver_knows_how_many_networks_share_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    data, told = random_batch(), []

    def listen(problem: Problem) -> torch.Tensor:
        told.append(problem.concurrent_solves)
        return solved(problem)

    solved = tfgw_pooling.distances
    monkeypatch.setattr(tfgw_pooling, "distances", listen)
    layer = make_layer()
    with solving_at_once(3):
        layer(data.x, data.edge_index, data.batch)
    layer(data.x, data.edge_index, data.batch)
    assert told == [3, 1]

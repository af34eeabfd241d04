"""Bad input gets a ``ValueError`` that names the argument, and the graph if there is one, before any work."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.ot.problems import random_problem
from tfgw.nn import TFGWPooling, TWPooling
from tfgw.ot import GraphBatch, Templates, canonical_order, fgw, linear_transport, wasserstein
from tfgw.ot.problem import weight_tolerance

NAN, INF = float("nan"), float("inf")
# Graphs of 7, 4, 11, 1 and 6 nodes with 3 features, so node 8 is in graph 1 and node 13 in graph 2;
# 4 templates of 5 nodes.


def arguments(kind: str = "weighted") -> dict[str, Any]:
    """All arguments of a valid call."""
    problem = random_problem(0, kind)
    templates = {f"template_{name}": field for name, field in vars(problem.templates).items()}
    return {**vars(problem.graphs), **templates, "alpha": problem.alpha}


def call(given: dict[str, Any]) -> Tensor:
    given = dict(given)
    templates = Templates(*(given.pop(f"template_{name}") for name in ("features", "structure", "weights")))
    options = {name: given.pop(name) for name in list(given) if name not in GraphBatch.__dataclass_fields__}
    return fgw(GraphBatch(**given), templates, options.pop("alpha"), **options).distances


def put(tensor: Tensor, place: Any, value: float) -> Tensor:
    tensor = tensor.clone()
    tensor[place] = value
    return tensor


CHANGES: dict[str, tuple[str, Any, str]] = {  # name: argument, its bad value made from the good one, message
    "NaN feature": ("x", lambda x: put(x, (8, 1), NAN), r"^x: graph 1 .* not finite"),
    "infinite feature": ("x", lambda x: put(x, (13, 0), INF), r"^x: graph 2 .* not finite"),
    "NaN in the last feature": ("x", lambda x: put(x, (-1, -1), NAN), r"^x: graph 4 .* not finite"),
    "NaN edge weight": (
        "edge_weight",
        lambda w: put(w, -1, NAN),
        r"^edge_weight: graph 4 .* not finite .*\(edge \d+\)",
    ),
    "infinite edge weight": (
        "edge_weight",
        lambda w: put(w, 0, -INF),
        r"^edge_weight: graph 0 .* not finite",
    ),
    "NaN template feature": (
        "template_features",
        lambda f: put(f, (2, 0, 1), NAN),
        r"^template_features: template 2 .* not finite",
    ),
    "infinite template structure": (
        "template_structure",
        lambda c: put(c, (3, 0, 1), INF),
        r"^template_structure: template 3 .* not finite",
    ),
    "negative weight": ("node_weights", lambda h: put(h, 8, -0.1), r"^node_weights: graph 1 .* negative"),
    "NaN weight": ("node_weights", lambda h: put(h, 13, NAN), r"^node_weights: graph 2 .* not finite"),
    "weights all zero": (
        "node_weights",
        lambda h: put(h, slice(0, 7), 0),
        r"^node_weights: .* graph 0 are all zero",
    ),
    "weights off 1": (
        "node_weights",
        lambda h: put(h, 22, 0.5),
        r"^node_weights: .* graph 3 sum to 0.5, not 1",
    ),
    "weights slightly off 1": (
        "node_weights",
        lambda h: put(h, 22, 1 + 3e-6),
        r"^node_weights: .* graph 3 sum to 1.0.*, not 1",
    ),
    "negative template weight": (
        "template_weights",
        lambda h: put(h, (1, 2), -0.1),
        r"^template_weights: template 1 .* negative",
    ),
    "template weights all zero": (
        "template_weights",
        lambda h: put(h, 2, 0),
        r"^template_weights: .* template 2 are all zero",
    ),
    "template weights off 1": (
        "template_weights",
        lambda h: 1.01 * h,
        r"^template_weights: .* template 0 sum to 1.01, not 1",
    ),
    "infinite template weight": (
        "template_weights",
        lambda h: put(h, (3, 3), INF),
        r"^template_weights: template 3 .* not finite",
    ),
    "features differ": (
        "x",
        lambda x: x[:, :2],
        r"^x: graphs have 2 features per node, template_features has 3",
    ),
    "empty batch": ("x", lambda x: x[:0], r"^x: the batch has no nodes"),
    "empty graph": ("batch", lambda b: b + (b > 1), r"^batch: graph 2 has no nodes"),
    "empty first graph": ("batch", lambda b: b + 1, r"^batch: graph 0 has no nodes"),
    "far more graphs than nodes": ("batch", lambda b: b + (b > 3) * 10**15, r"^batch: graph 4 has no nodes"),
    "unsorted batch": ("batch", lambda b: b.flip(0), r"^batch: must be sorted, but node 6 of graph 3 comes after"),
    "unsorted batch within": (
        "batch",
        lambda b: put(b, 3, 1),
        r"^batch: must be sorted, but node 4 of graph 0",
    ),
    "negative graph": ("batch", lambda b: put(b, 0, -1), r"^batch: node 0 belongs to graph -1"),
    "batch of another length": ("batch", lambda b: b[:-1], r"^batch: has 28 entries, but x has 29"),
    "batch of another dtype": ("batch", lambda b: b.int(), r"^batch: expected dtype torch.int64"),
    "batch_size too small": (
        "batch_size",
        lambda _: 3,
        r"^batch: node 22 belongs to graph 3, but there are 3",
    ),
    "batch_size zero": ("batch_size", lambda _: 0, r"^batch_size: must be at least 1, got 0"),
    "edge beyond the nodes": (
        "edge_index",
        lambda e: put(e, (1, 5), 29),
        r"^edge_index: edge 5 .* out of range for 29 nodes",
    ),
    "negative edge": ("edge_index", lambda e: put(e, (0, 3), -1), r"^edge_index: edge 3 .* out of range"),
    "edge between graphs": (
        "edge_index",
        lambda e: put(e, (1, 0), 8),
        r"^edge_index: .* joins graph 0 and graph 1",
    ),
    "edges as reals": ("edge_index", lambda e: e.double(), r"^edge_index: expected dtype torch.int64"),
    "edges transposed": ("edge_index", lambda e: e.T, r"^edge_index: "),
    "edge weights of another length": ("edge_weight", lambda w: w[1:], r"^edge_weight: has \d+ entries, but"),
    "edge weights without edges": ("edge_index", lambda _: None, r"^edge_weight: needs edge_index"),
    "integer features": ("x", lambda x: x.long(), r"^x: expected a floating-point dtype, got torch.int64"),
    "complex features": ("x", lambda x: x.to(torch.complex128), r"^x: expected a floating-point dtype"),
    "sparse features": ("x", lambda x: x.to_sparse(), r"^x: expected a dense tensor"),
    "features as an array": ("x", lambda x: x.numpy(), r"^x: expected a tensor, got ndarray"),
    "features of one dimension": ("x", lambda x: x[:, 0], r"^x: expected shape \(num_nodes, num_features\)"),
    "integer weights": (
        "node_weights",
        lambda h: h.long(),
        r"^node_weights: expected a floating-point dtype",
    ),
    "integer template features": (
        "template_features",
        lambda f: f.long(),
        r"^template_features: expected a floating",
    ),
    "no templates": ("template_features", lambda f: f[:0], r"^template_features: needs templates with nodes"),
    "templates without nodes": (
        "template_features",
        lambda f: f[:, :0],
        r"^template_features: needs templates with",
    ),
    "template structure not square": (
        "template_structure",
        lambda c: c[:, :4],
        r"^template_structure: expected shape",
    ),
    "template weights of another size": (
        "template_weights",
        lambda h: h[:, 1:],
        r"^template_weights: expected shape",
    ),
    "template structure missing": ("template_structure", lambda _: None, r"^template_structure: missing"),
    "alpha above 1": ("alpha", lambda _: 1.5, r"^alpha: must lie in \[0, 1\], but is 1.5"),
    "alpha below 0": ("alpha", lambda _: -1e-9, r"^alpha: must lie in \[0, 1\]"),
    "alpha NaN": ("alpha", lambda _: NAN, r"^alpha: must lie in \[0, 1\]"),
    "one alpha above 1": ("alpha", lambda a: put(a, 2, 1.25), r"^alpha: .* 1.25 for template 2"),
    "one alpha below 0": ("alpha", lambda a: put(a, 1, -0.25), r"^alpha: .* -0.25 for template 1"),
    "alpha of another length": (
        "alpha",
        lambda a: a[:3],
        r"^alpha: expected a scalar or one value for each of 4",
    ),
    "alpha as text": ("alpha", lambda _: "half", r"^alpha: expected a number or a tensor, got str"),
    "integer alpha tensor": ("alpha", lambda _: torch.tensor(1), r"^alpha: expected a floating-point dtype"),
    "max_iter zero": ("max_iter", lambda _: 0, r"^max_iter: must be at least 1, got 0"),
    "n_starts zero": ("n_starts", lambda _: 0, r"^n_starts: must be at least 1, got 0"),
    "max_iter beyond 32 bits": ("max_iter", lambda _: 2**31, r"^max_iter: must be at most 2147483647, got 2147483648"),
    "max_iter with a fraction": ("max_iter", lambda _: 1.5, r"^max_iter: expected an integer, got 1.5"),
    "max_iter without a fraction": ("max_iter", lambda _: 5.0, r"^max_iter: expected an integer, got 5.0"),
    "max_iter as truth": ("max_iter", lambda _: True, r"^max_iter: expected an integer, got True"),
    "max_iter missing": ("max_iter", lambda _: None, r"^max_iter: expected an integer, got None"),
    "n_starts beyond 32 bits": ("n_starts", lambda _: 2**40, r"^n_starts: must be at most 2147483647"),
    "n_starts as text": ("n_starts", lambda _: "4", r"^n_starts: expected an integer, got '4'"),
    "n_starts as truth": ("n_starts", lambda _: True, r"^n_starts: expected an integer, got True"),
    "threads beyond 32 bits": ("num_threads", lambda _: 2**40, r"^num_threads: must be at most 2147483647"),
    "threads with a fraction": ("num_threads", lambda _: 2.5, r"^num_threads: expected an integer, got 2.5"),
    "threads as truth": ("num_threads", lambda _: True, r"^num_threads: expected an integer, got True"),
    "batch_size beyond 64 bits": ("batch_size", lambda _: 2**70, r"^batch_size: must be at most 2147483647"),
    "batch_size with a fraction": ("batch_size", lambda _: 5.5, r"^batch_size: expected an integer, got 5.5"),
    "batch_size as truth": ("batch_size", lambda _: True, r"^batch_size: expected an integer, got True"),
    "tol as text": ("tol", lambda _: "small", r"^tol: expected a number, got 'small'"),
    "tol missing": ("tol", lambda _: None, r"^tol: expected a number, got None"),
    "tol as truth": ("tol", lambda _: True, r"^tol: expected a number, got True"),
    "tol negative": ("tol", lambda _: -1.0, r"^tol: must not be negative"),
    "tol NaN": ("tol", lambda _: NAN, r"^tol: must not be negative"),
    "no threads": ("num_threads", lambda _: 0, r"^num_threads: must be at least 1, got 0"),
    "unknown form of plans": ("plans", lambda _: "csr", r"^plans: must be 'dense', 'sparse' or None"),
    "batch as a list": ("batch", lambda b: b.tolist(), r"^batch: expected a tensor, got list"),
    "edges as a list": ("edge_index", lambda e: e.tolist(), r"^edge_index: expected a tensor, got list"),
    "start of another shape": (
        "initial_plans",
        lambda _: torch.ones(29, 5, 4),
        r"^initial_plans: expected shape",
    ),
    "start of another dtype": (
        "initial_plans",
        lambda _: torch.ones(29, 4, 5, dtype=torch.int64),
        r"^initial_plans: expected a floating-point dtype",
    ),
    "start with NaN": (
        "initial_plans",
        lambda _: put(torch.ones(29, 4, 5), (13, 1, 2), NAN),
        r"^initial_plans: graph 2 .* not finite",
    ),
    "start on another device": (
        "initial_plans",
        lambda _: torch.ones(29, 4, 5, device="meta"),
        r"^initial_plans: is on meta, but x is on cpu",
    ),
}


@pytest.mark.parametrize(("argument", "spoil", "message"), CHANGES.values(), ids=CHANGES.keys())
def test_bad_argument_is_named(argument: str, spoil: Any, message: str) -> None:
    good = arguments()
    assert call(good).shape == (5, 4)
    with pytest.raises(ValueError, match=message):
        call({**good, argument: spoil(good.get(argument))})


def test_sums_of_weights_may_differ_from_1_by_rounding() -> None:
    """100 units in the last place of the coarser precision, but between 1e-6 and 0.05."""
    assert weight_tolerance(torch.float64, torch.float64) == 1e-6
    assert (
        weight_tolerance(torch.float32, torch.float64) == weight_tolerance(torch.float64, torch.float32) == 100 * 2**-23
    )
    assert weight_tolerance(torch.float16, torch.float32) == 0.05  # not 100 · 2⁻¹⁰


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda c: put(c, 7**2 + 1, NAN), r"^structure: graph 1 .* not finite"),
        (lambda c: put(c, -1, -INF), r"^structure: graph 4 .* not finite"),
        (lambda c: c[:-1], r"^structure: has 222 entries, but graphs of these sizes need 223"),
        (lambda c: c.long(), r"^structure: expected a floating-point dtype"),
        (lambda c: c.reshape(1, 1, -1), r"^structure: expected the flattened matrices"),
        (lambda c: c.to("meta"), r"^structure: is on meta, but x is on cpu"),
    ],
)
def test_bad_dense_structure_is_named(spoil: Any, message: str) -> None:
    good = arguments("dense")
    with pytest.raises(ValueError, match=message):
        call({**good, "structure": spoil(good["structure"])})


def test_one_kind_of_structure() -> None:
    dense, sparse = arguments("dense"), arguments("sparse")
    with pytest.raises(ValueError, match=r"^structure: give either edge_index or structure, not both"):
        call({**dense, "edge_index": sparse["edge_index"]})
    with pytest.raises(ValueError, match=r"^edge_index: missing, but the templates have a structure"):
        call({**sparse, "edge_index": None})


@pytest.mark.parametrize("argument", sorted(set(arguments()) - {"x", "batch_size", "structure"}))
def test_tensors_on_different_devices_are_named(argument: str) -> None:
    good = arguments()
    with pytest.raises(ValueError, match=rf"^{argument}: is on meta, but .* is on cpu|is on cpu, but .* is on meta"):
        call({**good, argument: good[argument].to("meta")})


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"cost": torch.full((7, 2, 5), NAN)}, r"^cost: graph 0 .* not finite"),
        ({"cost": put(torch.ones(7, 2, 5), (6, 0, 0), INF)}, r"^cost: graph 1 .* not finite"),
        ({"cost": torch.ones(7, 2, 5, dtype=torch.int64)}, r"^cost: expected a floating-point tensor"),
        ({"cost": torch.ones(7)}, r"^cost: expected a floating-point tensor of shape"),
        ({"cost": np.ones((7, 2, 5))}, r"^cost: expected a floating-point tensor"),
        ({"node_weights": torch.full((7,), 0.2)}, r"^node_weights: .* graph 0 sum to 0.8"),
        ({"node_weights": torch.ones(6)}, r"^node_weights: has 6 entries"),
        ({"template_weights": torch.ones(2, 5)}, r"^template_weights: .* template 0 sum to 5, not 1"),
        ({"template_weights": torch.ones(5)}, r"^template_weights: expected shape"),
        ({"template_weights": [0.2] * 5}, r"^template_weights: expected a tensor, got list"),
        ({"batch": torch.tensor([0, 0, 0, 0, 2, 2, 2])}, r"^batch: graph 1 has no nodes"),
        ({"batch": torch.tensor([1, 0, 0, 0, 1, 1, 1])}, r"^batch: must be sorted, but node 1 of graph 0"),
        ({"batch": torch.tensor([0, 0, 9, 0, 1, 1, 1])}, r"^batch: must be sorted, but node 3 of graph 0"),
    ],
)
def test_bad_transport_problem_is_named(bad: dict[str, Any], message: str) -> None:
    good = {"cost": torch.ones(7, 2, 5), "batch": torch.tensor([0, 0, 0, 0, 1, 1, 1])}
    assert linear_transport(**good).distances.shape == (2, 2)
    with pytest.raises(ValueError, match=message):
        linear_transport(**{**good, **bad})


def test_checks_come_before_the_work() -> None:
    """The last graph is bad; had the others been solved first, this would take minutes."""
    x = torch.zeros(2000, 400, dtype=torch.float64)
    x[-1, -1] = NAN
    batch = torch.arange(2).repeat_interleave(1000)
    with pytest.raises(ValueError, match=r"^x: graph 1 "):
        wasserstein(GraphBatch(x, batch=batch), Templates(torch.zeros(50, 200, 400, dtype=torch.float64)))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e90])
@pytest.mark.parametrize("argument", ["x", "edge_weight", "template_structure", "template_features"])
def test_extreme_values_do_no_harm(argument: str, scale: float) -> None:
    good = arguments()
    distances = call({**good, argument: scale * good[argument]})
    assert distances.shape == (5, 4)
    assert bool(distances.isfinite().all())


def test_extreme_values_together_do_no_harm() -> None:
    """Products of four of them overflow, so the costs that break ties at the first step are NaN."""
    good = arguments()
    extreme = ("x", "edge_weight", "template_structure", "template_features")
    distances = call({**good, **{argument: 1e99 * good[argument] for argument in extreme}})
    assert bool(distances.isfinite().all())


@pytest.mark.parametrize("argument", ["x", "edge_weight", "template_structure", "template_features"])
def test_values_whose_squares_overflow_are_refused(argument: str) -> None:
    good = arguments()
    with pytest.raises(ValueError, match=rf"^{argument}: .* beyond 1e100"):
        call({**good, argument: 1e150 * good[argument]})


LAYER_OPTIONS = [
    ("max_iter", 2**31),
    ("max_iter", 1.5),
    ("n_starts", 2**31),
    ("n_starts", True),
    ("n_starts", 0),
    ("num_threads", 2**40),
    ("num_threads", 0.5),
    ("tol", NAN),
    ("tol", -1e-9),
    ("tol", "small"),
]


@pytest.mark.parametrize(("name", "value"), LAYER_OPTIONS)
def test_layers_name_options_out_of_range_when_they_are_made_and_when_they_are_called(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{name}: "):
        TFGWPooling(3, 4, 5, **{name: value})
    if name == "num_threads":
        with pytest.raises(ValueError, match=f"^{name}: "):
            TWPooling(3, 4, 5, **{name: value})
    layer = TFGWPooling(3, 4, 5)
    setattr(layer, name, value)
    with pytest.raises(ValueError, match=f"^{name}: "):
        layer(torch.zeros(2, 3), torch.tensor([[0, 1], [1, 0]]))


@pytest.mark.parametrize("threads", [0, True, 1.5, 2**40])
def test_linear_transport_names_threads_out_of_range(threads: Any) -> None:
    with pytest.raises(ValueError, match=r"^num_threads: "):
        linear_transport(torch.rand(3, 2), num_threads=threads)


@pytest.mark.parametrize("effort", [-1, True, 1.5, 2**64])
def test_canonical_order_names_an_effort_out_of_range(effort: Any) -> None:
    with pytest.raises(ValueError, match=r"^effort: "):
        canonical_order(GraphBatch(torch.zeros(2, 1)), effort=effort)


def test_options_may_be_integers_of_numpy() -> None:
    good = arguments()
    found = call(
        {**good, "max_iter": np.int64(7), "n_starts": np.int32(2), "num_threads": np.int64(1), "tol": np.float32(0)}
    )
    assert torch.equal(found, call({**good, "max_iter": 7, "n_starts": 2, "num_threads": 1, "tol": 0}))


def test_limits_of_options_are_allowed() -> None:
    good = arguments()
    graphs = GraphBatch(good["x"], batch=good["batch"])
    for effort in (0, 2**63 - 1):
        assert canonical_order(graphs, effort=effort).order.sort().values.tolist() == [*range(29)]
    with pytest.raises(ValueError, match="effort: must be at most 9223372036854775807"):
        canonical_order(graphs, effort=2**63)
    with pytest.raises(ValueError, match=r"batch: expected shape \(num_nodes,\), got"):
        GraphBatch(good["x"], batch=good["batch"][None])

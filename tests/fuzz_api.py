"""Random calls of the public API, valid and invalid: ``python -m tests.fuzz_api SECONDS [SEED]``, or ``make fuzz-api``.

Valid input must give finite results with the right marginals, and finite gradients; linear problems have the value that
POT finds, all derivatives agree, and graphs come back from files as they were. Input with one thing wrong must be
refused with a ``ValueError``. Anything else, a crash or a hang included, ends the run with the seed that repeats it.
``tests/fuzz_files.py`` does the same with corrupted files.
"""

import faulthandler
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from tests.ot.oracles import emd_value
from tfgw import ot
from tfgw.datasets import CanonicalOrder, from_data_list, load, save
from tfgw.estimators import TFGWTransformer
from tfgw.nn import TFGWPooling, TWPooling

PATIENCE = 60  # seconds for one call
EXACT = "donot_use_mm_for_euclid_dist"
Call = dict[str, Any]


def random_call(rng: np.random.Generator) -> Call:
    """Arguments of ``GraphBatch``, ``Templates`` and ``fgw`` in one dictionary."""
    sizes = rng.integers(1, 12, rng.integers(1, 5))
    nodes, d, K, m = int(sizes.sum()), int(rng.integers(0, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 9))
    dtype = torch.float64 if rng.random() < 0.8 else torch.float32
    scale = 10.0 ** rng.integers(-6, 7) if rng.random() < 0.3 else 1.0

    def numbers(*shape: int) -> Tensor:
        values = rng.integers(-1, 2, shape) if rng.random() < 0.4 else rng.normal(size=shape)
        return torch.from_numpy(scale * values).to(dtype)

    def weights(*shape: int, zeros: bool) -> Tensor:
        values = rng.random(shape) * (rng.random(shape) > 0.3 * zeros) if rng.random() < 0.7 else np.ones(shape)
        values[..., 0] += 0.1
        return torch.from_numpy(values / values.sum(-1, keepdims=True)).to(dtype)

    batch = torch.arange(len(sizes)).repeat_interleave(torch.from_numpy(sizes))
    call: Call = {"x": numbers(nodes, d), "batch": batch, "features": numbers(K, m, d)}
    kind = rng.choice(["none", "sparse", "weighted", "dense"])
    blocks = [rng.random((n, n)) < rng.random() for n in sizes]
    blocks = [block | block.T for block in blocks] if rng.random() < 0.7 else blocks
    if kind in ("sparse", "weighted"):
        starts = np.cumsum(sizes) - sizes
        edges = [np.argwhere(block).T + start for block, start in zip(blocks, starts, strict=True)]
        call["edge_index"] = torch.from_numpy(np.concatenate(edges, 1)).long()
        if kind == "weighted":
            call["edge_weight"] = numbers(call["edge_index"].shape[1])
    elif kind == "dense":
        call["structure"] = torch.cat([numbers(int(n), int(n)).flatten() for n in sizes])
    call["template_structure"] = None if kind == "none" else numbers(K, m, m)
    call["alpha"] = 0.0 if kind == "none" else float(rng.choice([0.0, 1.0, rng.random()]))
    if rng.random() < 0.5:
        parts = [weights(int(n), zeros=False) for n in sizes]
        call["node_weights"] = torch.cat(parts)
    if rng.random() < 0.6:
        call["weights"] = weights(K, m, zeros=True)
    call["n_starts"] = int(rng.choice([1, 1, 2, 12]))
    first = str(rng.choice(["uniform", "anchored"]))
    call["start_kinds"] = [first, *rng.choice(ot.START_KINDS, int(rng.integers(3))).tolist()]
    call["max_iter"] = int(rng.choice([1, 2, 1000]))
    call["tol"] = float(rng.choice([0.0, 1e-9, 1e-2]))
    return call


def take_apart(call: Call) -> tuple[ot.GraphBatch, ot.Templates, float, Call]:
    rest = dict(call)
    templates = (rest.pop("features"), rest.pop("template_structure"), rest.pop("weights", None))
    settings = {name: rest.pop(name) for name in ("n_starts", "start_kinds", "max_iter", "tol")}
    return (
        ot.GraphBatch(**{k: v for k, v in rest.items() if k != "alpha"}),
        ot.Templates(*templates),
        rest["alpha"],
        settings,
    )


def require(condition: Any, message: str) -> None:
    if not bool(condition):
        raise AssertionError(message)


def check_fgw(call: Call) -> None:
    graphs, templates, alpha, settings = take_apart(call)
    leaves = [t.requires_grad_() for t in (graphs.x, templates.features) if t.numel()]
    found = ot.fgw(graphs, templates, alpha, **settings)
    require(found.distances.isfinite().all(), "distances are finite")
    require((found.distances >= 0).all(), "distances are not negative")
    require(found.plans.isfinite().all() and (found.plans >= 0).all(), "plans are couplings")
    mass = torch.zeros(found.distances.shape, dtype=torch.float64)
    mass.index_add_(0, graphs.batch, found.plans.sum(-1))
    require(torch.allclose(mass, torch.ones_like(mass), atol=1e-6), "plans have mass 1")
    if leaves:
        gradients = torch.autograd.grad(found.distances.sum(), leaves)
        require(all(g.isfinite().all() for g in gradients), "gradients are finite")


def check_diagnose(call: Call) -> None:
    graphs, templates, alpha, settings = take_apart(call)
    found = ot.diagnose(graphs, templates, alpha, **settings)
    slack = 1e-9 * found.distances.abs() + 1e-300
    require(found.distances.isfinite().all() and found.lower_bounds.isfinite().all(), "diagnosis is finite")
    require((found.lower_bounds <= found.distances + slack).all(), "the bound is one")
    require((found.spreads >= -slack).all() and (found.gaps >= 0).all(), "spreads and gaps are not negative")


def check_order(call: Call) -> None:
    graphs, _, _, _ = take_apart(call)
    found = ot.canonical_order(graphs, effort=2**18)
    require(torch.equal(found.order.sort().values, torch.arange(len(graphs.x))), "an order is a permutation")
    require(torch.equal(graphs.batch[found.order], graphs.batch), "graphs stay apart")


def check_pooling(call: Call) -> None:
    graphs, templates, alpha, settings = take_apart(call)
    K, m, d = templates.features.shape
    if templates.structure is None:
        pool: torch.nn.Module = TWPooling(d, K, m).to(graphs.x.dtype)
        found = pool(graphs.x, graphs.batch)
    else:
        pool = TFGWPooling(d, K, m, structure="precomputed", directed=True, alpha=alpha, **settings).to(graphs.x.dtype)
        pool.set_templates(templates.structure, templates.features, templates.weights)
        sizes = graphs.batch.bincount()
        structure = graphs.structure if graphs.structure is not None else graphs.x.new_zeros(int((sizes**2).sum()))
        found = pool(graphs.x, None, graphs.batch, structure=structure, node_weights=graphs.node_weights)
    require(found.isfinite().all(), "the layer's output is finite")


def varied(call: Call) -> tuple[Callable[..., Tensor], tuple[Tensor, Tensor]]:
    """Distances as a function of the features of graphs and templates, and their values here."""

    def distances(x: Tensor, features: Tensor) -> Tensor:
        graphs, templates, alpha, settings = take_apart(call | {"x": x, "features": features})
        return ot.fgw(graphs, templates, alpha, **settings).distances

    return distances, (call["x"].double(), call["features"].double())


def in_double(call: Call) -> Call:
    return {name: value.double() if _is_real(value) else value for name, value in call.items()}


def _is_real(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def like(value: Tensor) -> Tensor:
    """Numbers that depend on the shape alone."""
    return torch.linspace(-1.0, 1.5, value.numel(), dtype=value.dtype).reshape(value.shape)


def check_forward_mode(call: Call) -> None:
    """⟨v, Jt⟩ by forward mode is ⟨Jᵀv, t⟩ by backward mode."""
    distances, values = varied(in_double(call))
    found, tangent = torch.func.jvp(distances, values, tuple(map(like, values)))
    weights = like(found)
    leaves = [value.clone().requires_grad_() for value in values]
    gradients = torch.autograd.grad((distances(*leaves) * weights).sum(), leaves)
    terms = [(gradient * like(value)).flatten() for gradient, value in zip(gradients, values, strict=True)]
    require(tangent.isfinite().all(), "tangents are finite")
    _require_close((weights * tangent).sum(), torch.cat(terms).sum(), of=torch.cat([*terms, tangent.flatten()]))


def check_transforms(call: Call) -> None:
    """``grad``, ``jacrev`` and ``vmap`` of ``torch.func`` give what autograd and single calls give."""
    distances, (x, features) = varied(in_double(call))

    def total(value: Tensor) -> Tensor:
        return distances(value, features).sum()

    leaf = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(total(leaf), leaf)
    _require_close(torch.func.grad(total)(x), expected, of=expected)
    _require_close(torch.func.jacrev(total)(x), expected, of=expected)
    both = torch.stack([x, x + 0.25])
    alone = torch.stack([distances(one, features) for one in both])
    _require_close(torch.func.vmap(lambda one: distances(one, features))(both), alone, of=alone)


def check_oracle(call: Call) -> None:
    """Without structure the distance is POT's value of a linear problem; so is ``linear_transport``."""
    graphs, templates, _, _ = take_apart(in_double(call))
    K, m, _ = templates.features.shape
    plain = ot.GraphBatch(graphs.x, batch=graphs.batch, node_weights=graphs.node_weights)
    found = ot.wasserstein(plain, ot.Templates(templates.features, weights=templates.weights)).distances
    cost = torch.cdist(graphs.x.expand(K, -1, -1), templates.features, compute_mode=EXACT).square().permute(1, 0, 2)
    linear = ot.linear_transport(
        cost.contiguous(), batch=graphs.batch, node_weights=graphs.node_weights, template_weights=templates.weights
    )
    for b in range(graphs.num_graphs):
        nodes = graphs.batch == b
        n = int(nodes.sum())
        h = np.full(n, 1 / n) if graphs.node_weights is None else graphs.node_weights[nodes].numpy()
        for k in range(K):
            h_bar = np.full(m, 1 / m) if templates.weights is None else templates.weights[k].numpy()
            expected = emd_value(h / h.sum(), h_bar / h_bar.sum(), cost[nodes, k].numpy())
            scale = torch.tensor([expected, float(cost[nodes, k].max())])
            _require_close(found[b, k], torch.tensor(expected, dtype=torch.float64), of=scale)
            _require_close(linear.distances[b, k], torch.tensor(expected, dtype=torch.float64), of=scale)


def _require_close(found: Tensor, expected: Tensor, *, of: Tensor) -> None:
    scale = float(of.abs().max()) if of.numel() else 0.0
    error = float((found - expected).abs().max()) if found.numel() else 0.0
    require(error <= 1e-7 * scale + 1e-300, f"found {found}, expected {expected}")


def check_files(call: Call) -> None:
    """Graphs are what they were after they went through files."""
    graphs = as_list(call)
    for number, graph in enumerate(graphs):
        graph.y = torch.tensor([number % 2])
    dataset = from_data_list(graphs)
    with tempfile.TemporaryDirectory() as folder:
        again = load(save(dataset, f"{folder}/mine"), encoding=dataset.encoding)
    require(again.y.equal(dataset.y), "targets come back")
    require(again.x.equal(dataset.x), "features come back")
    for one, other in zip(again, dataset, strict=True):
        require(one.edge_index.equal(coalesce(other.edge_index)), "edges come back")


def as_list(call: Call) -> list[Data]:
    """The graphs one by one, undirected, for what takes lists of them."""
    graphs, _, _, _ = take_apart(call)
    found = []
    for b in range(graphs.num_graphs):
        nodes = (graphs.batch == b).nonzero().flatten()
        edges = graphs.edge_index if graphs.edge_index is not None else torch.zeros(2, 0, dtype=torch.int64)
        mine = edges[:, (graphs.batch[edges] == b).all(0)] - nodes[0]
        mine = torch.cat([mine, mine.flip(0)], 1).unique(dim=1) if mine.numel() else mine
        x = graphs.x[nodes].double() if graphs.x.shape[1] else None
        found.append(Data(x=x, edge_index=mine[:, mine[0] != mine[1]], num_nodes=len(nodes)))
    return found


def check_lists(call: Call) -> None:
    graphs = as_list(call)
    dataset = from_data_list(graphs).map(CanonicalOrder())
    require(len(dataset) == len(graphs), "no graph is lost")
    settings = {name: call[name] for name in ("n_starts", "start_kinds")}
    found = TFGWTransformer(num_templates=2, random_state=0, num_threads=1, **settings).fit_transform(graphs)
    require(np.isfinite(found).all(), "vectors are finite")


def check_pairs(call: Call) -> None:
    graphs = as_list(call)
    for graph in graphs:
        graph.x = torch.zeros(graph.num_nodes, 0) if graph.x is None else graph.x
    settings = {name: call[name] for name in ("n_starts", "start_kinds")}
    found = ot.pairwise(graphs, alpha=0.5, num_threads=1, **settings)
    require(found.equal(found.T), "the matrix is symmetric")
    require(bool((found >= 0).all() and (found.diagonal() == 0).all()), "distances are not negative, and 0 to itself")
    backwards = ot.pairwise(graphs[::-1], alpha=0.5, num_threads=1, **settings)
    require(backwards.flip(0, 1).equal(found), "the order of a list changes no bit")
    if len(graphs) > 1:
        near = ot.nearest(graphs, top=1, alpha=0.5, num_threads=1, **settings)
        best = found.fill_diagonal_(torch.inf).numpy().argmin(axis=1)
        require(bool((near.indices[:, 0].numpy() == best).all()), "the nearest graph is that of all pairs")


CHECKS: tuple[Callable[[Call], None], ...] = (
    check_fgw,
    check_diagnose,
    check_order,
    check_pooling,
    check_lists,
    check_pairs,
    check_forward_mode,
    check_transforms,
    check_oracle,
    check_files,
)


def spoil(call: Call, rng: np.random.Generator) -> str:
    """Make one thing wrong; says what."""

    def put(name: str, value: float) -> None:
        call[name] = call[name].clone()
        call[name].view(-1)[int(rng.integers(call[name].numel()))] = value

    ways: dict[str, Callable[[], Any]] = {
        "n_starts": lambda: call.update(n_starts=int(rng.integers(-3, 1))),
        "start_kinds": lambda: call.update(start_kinds=[[], ["perturbed"], ["random"], "uniform"][rng.integers(4)]),
        "max_iter": lambda: call.update(max_iter=0),
        "tol": lambda: call.update(tol=float(rng.choice([-1.0, np.nan]))),
        "alpha": lambda: call.update(alpha=float(rng.choice([-0.1, 1.5, np.nan, np.inf]))),
        "batch unsorted": lambda: call.update(batch=call["batch"].flip(0) + 1),
        "batch short": lambda: call.update(batch=call["batch"][:-1]),
        "batch type": lambda: call.update(batch=call["batch"].double()),
        "x type": lambda: call.update(x=call["x"].long()),
        "x flat": lambda: call.update(x=call["x"][:, :0].flatten()),
        "features wide": lambda: call.update(features=torch.nn.functional.pad(call["features"], (0, 1))),
        "weights": lambda: call.update(weights=torch.full(call["features"].shape[:2], 2.0, dtype=call["x"].dtype)),
        "node_weights": lambda: call.update(node_weights=torch.full((len(call["x"]),), -1.0, dtype=call["x"].dtype)),
    }
    if call["x"].numel():
        ways["x not finite"] = lambda: put("x", float(rng.choice([np.nan, np.inf, -np.inf])))
        ways["features not finite"] = lambda: put("features", np.nan)
    if call.get("edge_index") is not None and call["edge_index"].numel():
        ways["edge out of range"] = lambda: put("edge_index", float(rng.choice([-1, 10_000])))
    if call.get("edge_weight") is not None and call["edge_weight"].numel():
        ways["edge_weight not finite"] = lambda: put("edge_weight", np.nan)
    if call.get("structure") is not None:
        ways["structure short"] = lambda: call.update(structure=call["structure"][:-1])
        ways["structure not finite"] = lambda: put("structure", np.inf)
    if call["template_structure"] is not None:
        ways["template_structure"] = lambda: call.update(template_structure=call["template_structure"][:, :, :-1])
    name = str(rng.choice(list(ways)))
    ways[name]()
    return name


def run(seed: int) -> str:
    """One call; returns what it was."""
    rng = np.random.default_rng(seed)
    call = random_call(rng)
    if rng.random() < 0.6:
        check = CHECKS[int(rng.integers(len(CHECKS)))]
        check(call)
        return check.__name__.removeprefix("check_")
    wrong = spoil(call, rng)
    for check in (check_fgw, check_diagnose):
        try:
            check(call)
        except ValueError as error:
            require(str(error), f"{wrong}: an error has a message")
        else:
            raise AssertionError(f"{wrong}: was taken")
    return f"refused {wrong}"


def main(seconds: float, seed: int) -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, mock.patch("os.fsync"):  # nothing is worth waiting for the disk
        os.environ["XDG_CACHE_HOME"] = folder
        _main(seconds, seed)


def _main(seconds: float, seed: int) -> None:
    end, counts = time.monotonic() + seconds, Counter[str]()
    while time.monotonic() < end:
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        try:
            counts[run(seed)] += 1
        except BaseException:
            print(f"seed {seed}: python -m tests.fuzz_api 0 {seed}", file=sys.stderr)
            raise
        seed += 1
    faulthandler.cancel_dump_traceback_later()
    print(f"{counts.total()} calls, nothing found")
    for name, count in sorted(counts.items()):
        print(f"{count:8d} {name}")


if __name__ == "__main__":
    if len(sys.argv) > 2 and float(sys.argv[1]) == 0:
        print(run(int(sys.argv[2])))
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0, int(sys.argv[2]) if len(sys.argv) > 2 else 0)

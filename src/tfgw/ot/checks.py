"""Validate user input and build the problem. Each problem is validated here, once, and nowhere else.

This module checks shapes, dtypes and devices; the core checks values before it starts. Native code checks the problem
of a layer first, because the checks in Python take longer than the rest of a small solve. They produce the error
messages.
"""

from numbers import Real

from torch import Tensor

from tfgw.ot import _core  # the C++ extension
from tfgw.ot.inputs import (
    GraphBatch,
    Templates,
    check_floating,
    check_integer,
    check_same_device,
    count_graphs,
    number_of,
)
from tfgw.ot.problem import Problem, expanded
from tfgw.ot.tracing import is_eager


def problem_of(
    graphs: GraphBatch,
    templates: Templates,
    alpha: float | Tensor,
    **options: object,
) -> Problem:
    """Return the problem of comparing graphs with templates; ``options`` are other fields of :class:`Problem`."""
    problem = Problem(
        x=graphs.x,
        batch=graphs.batch,
        batch_size=graphs.batch_size,
        node_weights=graphs.node_weights,
        edge_index=graphs.edge_index,
        edge_weight=graphs.edge_weight,
        structure=graphs.structure,
        template_structure=templates.structure,
        template_features=templates.features,
        template_weights=uniform_weights(templates.features) if templates.weights is None else templates.weights,
        alpha=_as_tensor(alpha, templates.features),
        **options,  # type: ignore[arg-type]
    )
    _check_pair(problem)
    check_options(problem)
    _check_initial_plans(problem)
    _check_alpha(problem)
    return problem._replace(batch_size=graphs.num_graphs, alpha=expanded(problem.alpha, len(problem.template_weights)))


def checked(problem: Problem) -> Problem:
    """Check the problem of a layer, and count its graphs if ``batch_size`` is ``None``."""
    if not (is_eager() and _core.is_plain(problem)):
        return _checked_slowly(problem)
    if problem.batch_size is not None:
        return problem
    return problem.of_size(_count_graphs(problem.batch))


def _count_graphs(batch: Tensor | None) -> int:
    if batch is None:
        return 1
    return number_of(_core.last_graph(batch), batch) if batch.is_cpu else count_graphs(batch)


def _checked_slowly(problem: Problem) -> Problem:
    check_options(problem)
    graphs = GraphBatch(
        problem.x,
        batch=problem.batch,
        batch_size=problem.batch_size,
        edge_index=problem.edge_index,
        edge_weight=problem.edge_weight,
        structure=problem.structure,
        node_weights=problem.node_weights,
    )
    structure = problem.template_structure if problem.pattern is None else None
    Templates(problem.template_features, structure=structure, weights=problem.template_weights)
    _check_pair(problem)
    _check_alpha(problem)
    return problem._replace(batch_size=graphs.num_graphs)


def check_options(problem: Problem) -> None:
    """Raise ``ValueError`` if the solver options of a problem are invalid."""
    check_accuracy(problem.max_iter, problem.tol, problem.n_starts)


def check_accuracy(max_iter: int, tol: float, n_starts: int) -> None:
    """Raise ``ValueError`` if a solver option is invalid."""
    check_integer("max_iter", max_iter)
    check_integer("n_starts", n_starts)
    check_tolerance("tol", tol)


def check_tolerance(name: str, tol: float) -> None:
    """Raise ``ValueError`` if a tolerance is invalid."""
    if type(tol) is not float and (isinstance(tol, bool) or not isinstance(tol, Real)):
        raise ValueError(f"{name}: expected a number, got {tol!r}")
    if not tol >= 0:
        raise ValueError(f"{name}: must not be negative, got {tol}")


def thread_count(num_threads: int | None) -> int:
    """Convert ``num_threads`` to the value that a :class:`Problem` stores: 0 for ``None``."""
    if num_threads is None:
        return 0
    check_integer("num_threads", num_threads)
    return num_threads


def uniform_weights(features: Tensor) -> Tensor:
    """Return uniform node weights for templates with these features."""
    count, nodes, _ = features.shape
    return features.new_full((count, nodes), 1 / nodes)


def _check_pair(problem: Problem) -> None:
    x, features = problem.x, problem.template_features
    if x.shape[1] != features.shape[2]:
        raise ValueError(f"x: graphs have {x.shape[1]} features per node, template_features has {features.shape[2]}")
    has_structure = problem.edge_index is not None or problem.structure is not None
    if has_structure and problem.template_structure is None:
        raise ValueError("template_structure: missing, but the graphs have a structure")
    if not has_structure and problem.template_structure is not None:
        raise ValueError("edge_index: missing, but the templates have a structure (give edge_index or structure)")
    check_same_device("x", x, template_features=features)
    if problem.pattern is not None and problem.template_structure is not None:
        check_floating("template_structure", problem.template_structure, 2, "(num_templates, num_entries)")
        check_same_device("template_features", features, template_structure=problem.template_structure)


def _check_initial_plans(problem: Problem) -> None:
    plans = problem.initial_plans
    if plans is None:
        return
    check_floating("initial_plans", plans, 3, "(num_nodes, num_templates, template_nodes)")
    expected = (problem.x.shape[0], *problem.template_features.shape[:2])
    if tuple(plans.shape) != expected:
        raise ValueError(f"initial_plans: expected shape {expected}, got {tuple(plans.shape)}")
    check_same_device("x", problem.x, initial_plans=plans)


def _as_tensor(alpha: float | Tensor, features: Tensor) -> Tensor:
    if isinstance(alpha, Tensor):
        return alpha
    if not isinstance(alpha, Real):
        raise ValueError(f"alpha: expected a number or a tensor, got {type(alpha).__name__}")
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha: must lie in [0, 1], but is {alpha}")
    return features.new_full((features.shape[0],), alpha)


def _check_alpha(problem: Problem) -> None:
    alpha, count = problem.alpha, problem.template_features.shape[0]
    check_floating("alpha", alpha, alpha.dim(), "")
    check_same_device("template_features", problem.template_features, alpha=alpha)
    if not (alpha.dim() == 1 and alpha.shape[0] == count) and alpha.numel() != 1:
        raise ValueError(
            f"alpha: expected a scalar or one value for each of {count} templates, got shape {tuple(alpha.shape)}"
        )

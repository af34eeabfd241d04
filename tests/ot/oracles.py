"""Linear optimal transport by others: POT's network simplex and SciPy's linear programming."""

import numpy as np
import ot as pot
from scipy.optimize import linprog

from tests.ot.reference import Array


def emd(h: Array, h_bar: Array, cost: Array) -> Array:
    """An optimal coupling, by POT, whose tolerance is absolute: it gets costs of the order of 1."""
    return pot.emd(h, h_bar, cost / (np.abs(cost).max() or 1.0), numItermax=10_000_000)


def emd_value(h: Array, h_bar: Array, cost: Array) -> float:
    """The optimal value, by POT."""
    return float((emd(h, h_bar, cost) * cost).sum())


def linprog_value(h: Array, h_bar: Array, cost: Array) -> float:
    """The optimal value, by SciPy. One of the n + m equations is redundant and left out."""
    n, m = cost.shape
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))[:-1]
    result = linprog(
        cost.ravel(),
        A_eq=np.vstack([rows, columns]),
        b_eq=np.concatenate([h, h_bar[:-1]]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0, result.message
    return float(result.fun)

"""One pair, slow and obvious: what the tests hold the core against.

Written from the paper's equation 1 as it stands, with none of the algebra that makes the core fast. It holds
all n² m² terms in memory, so it is for small graphs.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LinearOracle = Callable[[Array, Array, Array], Array]
"""``oracle(h, h_bar, cost)`` returns a coupling of the two weight vectors that minimises the linear cost."""


class Pair(NamedTuple):
    """A graph (C, F, h), a template (C̄, F̄, h̄), and the trade-off α between features (0) and structure (1)."""

    C: Array  # (n, n), not necessarily symmetric
    F: Array  # (n, d)
    h: Array  # (n,)
    C_bar: Array  # (m, m)
    F_bar: Array  # (m, d)
    h_bar: Array  # (m,)
    alpha: float


class Solution(NamedTuple):
    """Where Frank–Wolfe stopped."""

    value: float
    plan: Array  # (n, m)
    gap: float
    iterations: int


def structure_cost(pair: Pair, T: Array) -> float:
    """Gromov–Wasserstein term: Σ_ijkl (C_ij − C̄_kl)² T_ik T_jl."""
    return float(np.einsum("ijkl,ik,jl->", _mismatch(pair), T, T))


def feature_cost(pair: Pair, T: Array) -> float:
    """Wasserstein term: Σ_ik |F_i − F̄_k|² T_ik."""
    return float((_distances(pair) * T).sum())


def value(pair: Pair, T: Array) -> float:
    """Equation 1 at the coupling T."""
    return pair.alpha * structure_cost(pair, T) + (1 - pair.alpha) * feature_cost(pair, T)


def gradient(pair: Pair, T: Array) -> Array:
    """Its derivative with respect to T: each T_ik stands at two places of the Gromov–Wasserstein term."""
    L = _mismatch(pair)
    first = np.einsum("ijkl,jl->ik", L, T)
    second = np.einsum("jilk,jl->ik", L, T)
    return pair.alpha * (first + second) + (1 - pair.alpha) * _distances(pair)


def frank_wolfe(
    pair: Pair, oracle: LinearOracle, *, start: Array | None = None, max_iter: int = 1000, tol: float = 1e-9
) -> Solution:
    """Plain Frank–Wolfe with exact line search, from hh̄ᵀ unless given a start, until gap ≤ tol · value."""
    T = np.outer(pair.h, pair.h_bar) if start is None else start
    iteration = 0
    while True:
        iteration += 1
        G = gradient(pair, T)
        D = oracle(pair.h, pair.h_bar, G)
        now, gap = value(pair, T), float(((T - D) * G).sum())
        if gap <= tol * abs(now) or iteration == max_iter:
            return Solution(now, T, gap, iteration)
        # On the segment from T to D the value is now − gap·τ + curvature·τ².
        curvature = value(pair, D) - now + gap
        step = min(1.0, gap / (2 * curvature)) if curvature > 0 else 1.0
        T = T + step * (D - T)


def _mismatch(pair: Pair) -> Array:
    return (pair.C[:, :, None, None] - pair.C_bar[None, None, :, :]) ** 2


def _distances(pair: Pair) -> Array:
    return ((pair.F[:, None, :] - pair.F_bar[None, :, :]) ** 2).sum(-1)

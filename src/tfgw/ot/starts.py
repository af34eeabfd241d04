"""Kinds of starts of the solver."""

from collections.abc import Sequence

from tfgw.ot import _core  # the C++ extension

START_KINDS = ("uniform", "anchored", "perturbed")
"""``"uniform"``: hh̄ᵀ; later starts of this kind also break ties at random. ``"anchored"``: a link of the graph is
matched with a link of the template, and random walks from there distinguish all other nodes. ``"perturbed"``: near the
best minima so far, with a few linked nodes moved elsewhere."""

UNIFORM = _core.UNIFORM  # the bit of the first kind; the others follow
FRESH_STARTS, STARTS_PER_ROUND, KEPT_MINIMA = _core.FRESH_STARTS, _core.STARTS_PER_ROUND, _core.KEPT_MINIMA
"""Starts of a round that depend on no other, starts in a round, and minima stored per round (start_rules.cuh)."""

_ALL = (UNIFORM << len(START_KINDS)) - 1


def start_bits(start_kinds: Sequence[str], *, given: bool = False) -> int:
    """Convert kinds of starts to the bit mask of the core; ``given`` states whether there are initial plans.

    Raises:
        ValueError: If a kind is unknown, or if the kinds allow no first start.
    """
    if start_kinds is START_KINDS:
        return _ALL
    if isinstance(start_kinds, str) or not isinstance(start_kinds, Sequence):
        raise ValueError(f"start_kinds: expected a list of names, got {start_kinds!r}")
    for kind in start_kinds:
        if kind not in START_KINDS:
            raise ValueError(f"start_kinds: {kind!r} is none of {', '.join(START_KINDS)}")
    if not start_kinds:
        raise ValueError("start_kinds: must name at least one kind")
    if not given and {*start_kinds} == {"perturbed"}:
        raise ValueError("start_kinds: 'perturbed' alone has nothing to begin with; add 'uniform' or 'anchored'")
    return sum(UNIFORM << START_KINDS.index(kind) for kind in {*start_kinds})

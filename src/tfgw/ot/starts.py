"""Where the solver may start from."""

from collections.abc import Sequence

START_KINDS = ("uniform", "anchored", "perturbed")
"""``"uniform"``: hh̄ᵀ; after the first time, with ties broken at random. ``"anchored"``: a link of the graph is pinned
to a link of the template, and all other nodes are told apart by the walks that reach them from there. ``"perturbed"``:
near the best minima so far, with a few linked nodes put elsewhere."""

UNIFORM = 1  # the core's bit for the first of them; the others follow
_ALL = (UNIFORM << len(START_KINDS)) - 1


def start_bits(start_kinds: Sequence[str], *, given: bool = False) -> int:
    """The kinds as the core takes them; ``given``: whether there are plans to start from.

    Raises:
        ValueError: If there is no start of these kinds.
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

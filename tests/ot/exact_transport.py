"""Linear optimal transport in exact arithmetic: successive shortest paths over Python's integers."""

from fractions import Fraction

from tests.ot.reference import Array


def exact_value(plan: Array, cost: Array) -> Fraction:
    """Σ plan · cost, without rounding."""
    return sum((Fraction(float(t)) * Fraction(float(c)) for t, c in zip(plan.flat, cost.flat, strict=True)), Fraction())


def exact_optimum(h: Array, h_bar: Array, cost: Array) -> Fraction:
    """The optimal value for weights and costs taken at their exact values; the weights' sums must be equal."""
    supply, mass_unit = _integers(h)
    demand, other_unit = _integers(h_bar)
    units = max(mass_unit, other_unit)
    supply = [s * (units // mass_unit) for s in supply]
    demand = [d * (units // other_unit) for d in demand]
    assert sum(supply) == sum(demand)
    costs, cost_unit = _integers(cost.ravel())
    n, m = cost.shape
    return Fraction(_least_cost(supply, demand, [costs[i * m : (i + 1) * m] for i in range(n)]), units * cost_unit)


def _integers(values: Array) -> tuple[list[int], int]:
    """Integers and a power of two that they are to be divided by."""
    exact = [Fraction(float(value)) for value in values]
    unit = max(value.denominator for value in exact)
    return [int(value * unit) for value in exact], unit


def _least_cost(supply: list[int], demand: list[int], cost: list[list[int]]) -> int:
    """Sends what is left along the cheapest path from a row with supply to a column with demand, until all is sent."""
    n, m = len(supply), len(demand)
    flow = [[0] * m for _ in range(n)]
    have, want = list(supply), list(demand)
    while any(have):
        distance: list[int | None] = [0 if have[i] else None for i in range(n)] + [None] * m
        before = [-1] * (n + m)
        changed = True
        while changed:  # Bellman and Ford
            changed = False
            for i in range(n):
                for k in range(m):
                    arcs = [(i, n + k, cost[i][k])] + ([(n + k, i, -cost[i][k])] if flow[i][k] else [])
                    for start, end, length in arcs:
                        there, here = distance[end], distance[start]
                        if here is not None and (there is None or here + length < there):
                            distance[end], before[end], changed = here + length, start, True
        reached = [(d, k) for k in range(m) if want[k] and (d := distance[n + k]) is not None]
        column = min(reached)[1]
        path = [n + column]
        while before[path[-1]] >= 0:
            path.append(before[path[-1]])
        steps = list(zip(path[1:], path[:-1], strict=True))
        backward = [flow[end][start - n] for start, end in steps if start >= n]
        pushed = min([have[path[-1]], want[column], *backward])
        for start, end in steps:
            if start < n:
                flow[start][end - n] += pushed
            else:
                flow[end][start - n] -= pushed
        have[path[-1]] -= pushed
        want[column] -= pushed
    return sum(flow[i][k] * cost[i][k] for i in range(n) for k in range(m))

"""Graphs whose nodes refinement cannot tell apart."""

import itertools

import networkx as nx


def rook_and_shrikhande() -> nx.Graph:
    """Strongly regular with equal parameters, but not isomorphic: refinement alone cannot tell them apart."""
    steps = ((0, 1), (1, 0), (1, 1))
    torus = itertools.product(range(4), repeat=2)
    shrikhande = nx.Graph([((i, j), ((i + a) % 4, (j + b) % 4)) for i, j in torus for a, b in steps])
    return nx.disjoint_union(nx.line_graph(nx.complete_bipartite_graph(4, 4)), shrikhande)


SYMMETRIC = {
    "rook and Shrikhande": rook_and_shrikhande(),
    "cycles of two lengths": nx.disjoint_union_all([nx.cycle_graph(4), nx.cycle_graph(12), nx.cycle_graph(4)]),
    "hypercube": nx.hypercube_graph(5),
    "Petersen": nx.petersen_graph(),
    "twins": nx.complete_multipartite_graph(3, 3, 5),
    "clique": nx.complete_graph(12),
    "isolated nodes": nx.empty_graph(9),
    "stars": nx.disjoint_union_all([nx.star_graph(4), nx.star_graph(4), nx.star_graph(3)]),
    "tree": nx.balanced_tree(2, 4),
    "regular": nx.random_regular_graph(3, 30, seed=1),
    "equal components": nx.disjoint_union_all([nx.random_regular_graph(3, 8, seed=s % 3) for s in range(9)]),
}

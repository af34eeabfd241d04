"""
Matching two graphs
===================

The optimal transport plan shows which node of one graph corresponds to which node of the other.
"""

import matplotlib.pyplot as plt
import networkx as nx
import torch
from torch_geometric.utils import from_networkx

from tfgw import ot

# %%
# A graph, and a copy with renumbered nodes and one edge removed.
graph = nx.barbell_graph(4, 2)
nodes = list(graph)
renumbered = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(0)).tolist()
copy = nx.relabel_nodes(graph, dict(zip(nodes, renumbered, strict=True)))
copy.remove_edge(renumbered[0], renumbered[1])

# %%
# The solver compares graphs with *templates*, which are graphs too. Nodes have no features here, so we use α = 1 and
# several starts.
edges = from_networkx(graph).edge_index
structure = torch.tensor(nx.to_numpy_array(copy, nodelist=range(len(nodes))))
result = ot.fgw(
    ot.GraphBatch(torch.ones(len(nodes), 1, dtype=torch.float64), edge_index=edges),
    ot.Templates(torch.ones(1, len(nodes), 1, dtype=torch.float64), structure=structure[None]),
    alpha=1.0,
    n_starts=8,
)
plan = result.plans[:, 0]
matched = plan.argmax(1).tolist()
print(f"distance {float(result.distances):.4f}; removing one edge of n² = {len(nodes) ** 2} entries costs 2/n²")

# %%
# Nodes of the same colour are matched.
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2))
nx.draw(graph, nx.kamada_kawai_layout(graph), left, node_color=nodes, cmap="viridis", with_labels=True, font_color="w")
colours = {target: node for node, target in zip(nodes, matched, strict=True)}
layout = nx.kamada_kawai_layout(copy)
nx.draw(copy, layout, right, node_color=[colours[v] for v in copy], cmap="viridis", with_labels=True, font_color="w")
left.set_title("graph")
right.set_title("copy without an edge")

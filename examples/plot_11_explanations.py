"""
Explanations
============

Break a prediction down into contributions of nodes and edges, which sum to the score.
"""

import matplotlib.pyplot as plt
import networkx as nx
from matplotlib.colors import CenteredNorm

import tfgw
from tfgw.estimators import TFGWClassifier

# %%
# Trees, and trees with one triangle somewhere.
trees = [nx.balanced_tree(2, 2), *(nx.full_rary_tree(2, n) for n in range(6, 16))]
with_triangle = []
for number, tree in enumerate(trees):
    graph = tree.copy()
    parent = number % 2
    graph.add_edge(*list(graph.neighbors(parent))[-2:])
    with_triangle.append(graph)
graphs, labels = trees + with_triangle, ["tree"] * len(trees) + ["triangle"] * len(with_triangle)
model = TFGWClassifier(num_templates=4, epochs=60, random_state=0).fit(graphs, labels)

# %%
# Positive contributions support the class, negative ones oppose it.
graph = with_triangle[-1]
explanation = tfgw.explain(model, graph, target="triangle")
total = float(explanation.score - explanation.reference_score)
print(f"score − reference: {total:.3f}; sum over nodes: {float(explanation.node_mask.sum()):.3f}")

# %%
figure, axis = plt.subplots(figsize=(5, 3.5))
layout = nx.kamada_kawai_layout(graph)
values = explanation.node_mask[:, 0].numpy()
nx.draw_networkx_edges(graph, layout, ax=axis)
points = nx.draw_networkx_nodes(graph, layout, ax=axis, node_color=values, cmap="RdBu_r", edgecolors="k")
points.set_norm(CenteredNorm())
figure.colorbar(points, label="contribution to “triangle”")
axis.set_axis_off()

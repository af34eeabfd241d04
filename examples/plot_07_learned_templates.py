"""
Learned templates
=================

How templates change in training: before and after, with the curves of α and the loss.
"""

import networkx as nx

import tfgw.plot
from tfgw.estimators import TFGWClassifier

# %%
# Wheels and ladders, with two initial templates per class.
graphs = [nx.wheel_graph(n) for n in range(6, 14)] + [nx.circular_ladder_graph(n) for n in range(3, 11)]
labels = ["wheel"] * 8 + ["ladder"] * 8

# %%
# Before training, templates are training graphs; ``learn_templates=False`` keeps them.
settings = {"num_templates": 4, "template_nodes": 8, "num_layers": 0, "random_state": 0}
fixed = TFGWClassifier(**settings, epochs=1, learn_templates=False, learn_weights=False).fit(graphs, labels)
figure = tfgw.plot.templates(fixed)

# %%
# After training, links have weights between 0 and 1, and nodes that are not needed have weight 0.
learned = TFGWClassifier(**settings, epochs=60, template_lr=0.02).fit(graphs, labels)
figure = tfgw.plot.templates(learned, graphs=graphs)

# %%
# Loss, accuracy, and the trade-off α between features (0) and structure (1).
figure = tfgw.plot.curves(learned)
print(f"accuracy on the training graphs: {learned.score(graphs, labels):.2f}, α = {learned.alpha_:.2f}")

"""
First model
===========

Train a classifier on a list of graphs, predict new ones, and look at what it has learned.
"""

import networkx as nx

import tfgw.plot
from tfgw.estimators import TFGWClassifier

# %%
# Three kinds of graphs, of many sizes. Nodes have no features, so the structure is all there is.
sizes = range(6, 16)
graphs = [make(n) for make in (nx.cycle_graph, nx.star_graph, nx.path_graph) for n in sizes]
labels = [name for name in ("ring", "star", "path") for _ in sizes]

# %%
# ``fit`` draws six templates from the training graphs and learns them, with everything else.
model = TFGWClassifier(num_templates=6, epochs=40, random_state=0).fit(graphs, labels)
new = [nx.cycle_graph(20), nx.star_graph(20), nx.path_graph(20)]
print(model.predict(new))
print(model.predict_proba(new).round(2))

# %%
# Every graph is a point: its distances to the templates, in two dimensions.
figure = tfgw.plot.embedding(model, graphs, labels)

# %%
# The templates, each beside the training graph that is nearest to it. The size of a node is its weight, the
# opacity of a link its entry of C̄.
figure = tfgw.plot.templates(model, graphs=graphs)

# %%
# The model is a file that ``tfgw.load_model`` and the command line read. It holds no pickle.
model.save("shapes.safetensors")

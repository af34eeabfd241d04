"""
First model
===========

Train a classifier on a list of graphs, predict new graphs, and plot what the model has learned.
"""

import networkx as nx

import tfgw.plot
from tfgw.estimators import TFGWClassifier

# %%
# Three classes of graphs of different sizes. Nodes have no features, so only the structure matters.
sizes = range(6, 16)
graphs = [make(n) for make in (nx.cycle_graph, nx.star_graph, nx.path_graph) for n in sizes]
labels = [name for name in ("ring", "star", "path") for _ in sizes]

# %%
# ``fit`` samples six templates from the training graphs and trains them together with the rest of the model.
model = TFGWClassifier(num_templates=6, epochs=40, random_state=0).fit(graphs, labels)
new = [nx.cycle_graph(20), nx.star_graph(20), nx.path_graph(20)]
print(model.predict(new))
print(model.predict_proba(new).round(2))

# %%
# Every graph is a point: its distances to the templates, projected to two dimensions.
figure = tfgw.plot.embedding(model, graphs, labels)

# %%
# The templates, each next to its nearest training graph. Node size shows the weight, and link opacity the entry of
# C̄.
figure = tfgw.plot.templates(model, graphs=graphs)

# %%
# Save the model to a file for ``tfgw.load_model`` and the command line. The file contains no pickle.
model.save("shapes.safetensors")

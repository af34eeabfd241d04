"""
Regression
==========

Predict a property of a graph: its average clustering coefficient.
"""

import networkx as nx
import numpy as np

import tfgw.plot
from tfgw.estimators import TFGWRegressor

# %%
# Random graphs from sparse to dense. The target is the average clustering coefficient.
densities = np.random.default_rng(0).uniform(0.1, 0.9, 48)
graphs = [nx.gnp_random_graph(10, p, seed=seed) for seed, p in enumerate(densities)]
target = np.array([nx.average_clustering(graph) for graph in graphs])
train, test = np.arange(48) % 4 != 0, np.arange(48) % 4 == 0

# %%
model = TFGWRegressor(num_templates=4, epochs=40, random_state=0)
model.fit([g for g, chosen in zip(graphs, train, strict=True) if chosen], target[train])
predicted = model.predict([g for g, chosen in zip(graphs, test, strict=True) if chosen])
print(f"mean absolute error {np.abs(predicted - target[test]).mean():.3f}, standard deviation {target.std():.3f}")

# %%
figure = tfgw.plot.predicted_values(target[test, None], predicted[:, None], ["average clustering"])

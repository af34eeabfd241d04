"""
A support vector machine on FGW distances
=========================================

``TFGWTransformer`` computes the distances of graphs to templates that are sampled from the data. It is not trained, and
any scikit-learn model can follow.
"""

import matplotlib.pyplot as plt
import networkx as nx
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tfgw.estimators import TFGWTransformer

# %%
# Random graphs with and without communities.
communities = [nx.planted_partition_graph(2, 7, 0.7, 0.1, seed=seed) for seed in range(12)]
plain = [nx.gnp_random_graph(14, 0.38, seed=seed) for seed in range(12)]
graphs, labels = communities + plain, ["communities"] * 12 + ["none"] * 12

# %%
# The pipeline is an estimator, so a grid search can optimise the number of templates like any other parameter.
pipeline = make_pipeline(TFGWTransformer(alpha=1.0, random_state=0), StandardScaler(), SVC())
grid = {"tfgwtransformer__num_templates": [2, 4, 8]}
search = GridSearchCV(pipeline, grid, cv=3).fit(graphs, labels)
print(search.best_params_, f"accuracy in cross-validation: {search.best_score_:.2f}")

# %%
figure, axis = plt.subplots(figsize=(5, 3))
axis.errorbar(
    grid["tfgwtransformer__num_templates"],
    search.cv_results_["mean_test_score"],
    search.cv_results_["std_test_score"],
    marker="o",
)
axis.set(xlabel="templates", ylabel="accuracy", xscale="log")

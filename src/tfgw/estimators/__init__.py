"""Scikit-learn estimators on lists of graphs.

>>> graphs = [(C, F), (C2, F2), ...]                       # or PyG Data, or networkx graphs
>>> model = TFGWClassifier(num_templates=8, epochs=100, random_state=0).fit(graphs, labels)
>>> model.predict_proba(other_graphs)                      # (num_graphs, num_classes)
>>> TFGWKernelClassifier().fit(graphs, labels).loo_score_   # no network: the most accurate on small datasets
>>> cross_val_score(make_pipeline(TFGWTransformer(num_templates=16), SVC()), graphs, labels)
>>> cross_val_score(make_pipeline(FGWDistances(gamma=1.0), SVC(kernel="precomputed")), graphs, labels)
"""

from tfgw.estimators.classifier import TFGWClassifier
from tfgw.estimators.distances import FGWDistances
from tfgw.estimators.graphs import as_graphs
from tfgw.estimators.kernel_classifier import TFGWKernelClassifier
from tfgw.estimators.kernel_regressor import TFGWKernelRegressor
from tfgw.estimators.regressor import TFGWRegressor
from tfgw.estimators.transformer import TFGWTransformer

__all__ = [
    "FGWDistances",
    "TFGWClassifier",
    "TFGWKernelClassifier",
    "TFGWKernelRegressor",
    "TFGWRegressor",
    "TFGWTransformer",
    "as_graphs",
]

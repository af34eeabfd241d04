"""The methods that the paper compares with, as scikit-learn classifiers for lists of graphs.

>>> model = GIN(epochs=100, random_state=0).fit(graphs, labels, validation=(other_graphs, other_labels))
>>> model.validation_score_, model.score(test_graphs, test_labels)

docs/baselines.md gives the source of each method, our results, and those of its own paper.
"""

from tfgw.baselines.diffpool import DiffPool
from tfgw.baselines.drop_gin import DropGIN
from tfgw.baselines.fgw_kernel import FGWKernel
from tfgw.baselines.gin import GIN
from tfgw.baselines.mlp import MLP
from tfgw.baselines.ot_gnn import OTGNN
from tfgw.baselines.patchy_san import PatchySAN
from tfgw.baselines.ppgn import PPGN
from tfgw.baselines.random_forest import RandomForest
from tfgw.baselines.wegl import WEGL
from tfgw.baselines.wl import WL
from tfgw.baselines.wwl import WWL

__all__ = [
    "GIN",
    "MLP",
    "OTGNN",
    "PPGN",
    "WEGL",
    "WL",
    "WWL",
    "DiffPool",
    "DropGIN",
    "FGWKernel",
    "PatchySAN",
    "RandomForest",
]

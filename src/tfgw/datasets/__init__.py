"""Load, save, split and preprocess graph datasets: the paper's datasets and your own.

>>> dataset = load("ENZYMES", data_dir="~/data/tu")           # or load("./mine.zip"), from_networkx(...)
>>> others = load("./others", encoding=dataset.encoding)      # the same feature columns
>>> load("molecules.csv", columns=TableColumns(smiles="SMILES", target="active", identifier="id"))
>>> save(dataset[:50], "./some")                              # in TU format, with the original labels
>>> split = random_split(dataset, val=0.1, test=0.1, seed=0)
>>> dataset = Standardize().fit(dataset, split.train).transform(dataset)
>>> dataset = dataset.map(CanonicalOrder())                   # isomorphic graphs become equal
>>> dataset = dataset.map(ShortestPaths())                    # data.structure, for models on shortest paths
>>> train = torch_geometric.loader.DataLoader(dataset[split.train], batch_size=128, shuffle=True)
"""

from tfgw.datasets.canonical import CanonicalOrder
from tfgw.datasets.features import Features
from tfgw.datasets.from_data import Graphs, as_graph_dataset, from_data_list
from tfgw.datasets.from_nx import from_networkx
from tfgw.datasets.graph_dataset import GraphDataset
from tfgw.datasets.loading import load
from tfgw.datasets.molecule_table import TableColumns
from tfgw.datasets.molecules import from_smiles
from tfgw.datasets.node_encoding import NodeEncoding, UnseenLabels
from tfgw.datasets.saving import save
from tfgw.datasets.splits import IndexSplit, random_split
from tfgw.datasets.standardize import Standardize
from tfgw.datasets.statistics import Statistics, median_nodes, statistics
from tfgw.datasets.structure import ShortestPaths, shortest_paths
from tfgw.datasets.synthetic import Split, four_cycles, skip_circles

__all__ = [
    "CanonicalOrder",
    "Features",
    "GraphDataset",
    "Graphs",
    "IndexSplit",
    "NodeEncoding",
    "ShortestPaths",
    "Split",
    "Standardize",
    "Statistics",
    "TableColumns",
    "UnseenLabels",
    "as_graph_dataset",
    "four_cycles",
    "from_data_list",
    "from_networkx",
    "from_smiles",
    "load",
    "median_nodes",
    "random_split",
    "save",
    "shortest_paths",
    "skip_circles",
    "statistics",
]

"""A model and files of molecule-like graphs, for tests of streams."""

import json
import shutil
from pathlib import Path

import numpy as np
import torch

from tfgw.datasets import Features, NodeEncoding, save
from tfgw.datasets.graph_dataset import build_dataset
from tfgw.datasets.graph_tables import GraphTables, starts
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.train import Preprocessing, TrainedModel, save_model


def random_trees(graphs: int, *, seed: int = 0) -> GraphTables:
    """Trees of 3 to 9 nodes with labels 1 to 4 and one attribute."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(3, 10, graphs)
    edges = []
    for nodes in counts:
        child = np.arange(1, nodes)
        parent = rng.integers(0, child)
        both = np.stack([np.concatenate([child, parent]), np.concatenate([parent, child])])
        edges.append(both[:, np.lexsort(both[::-1])])
    nodes = int(counts.sum())
    return GraphTables(
        node_counts=counts,
        edge_counts=2 * (counts - 1),
        edges=np.concatenate(edges, axis=1),
        node_labels=rng.integers(1, 5, (nodes, 1)),
        node_attributes=rng.normal(size=(nodes, 1)),
        targets=rng.integers(0, 2, graphs),
    )


def small_trained(tables: GraphTables, path: Path, *, features: Features = "both") -> TrainedModel:
    """An untrained model for such graphs, and its file."""
    encoding = NodeEncoding.fit(tables, features=features)
    dataset = build_dataset(tables, name="trees", encoding=encoding)
    preprocessing = Preprocessing.fit(dataset)
    config = TFGWConfig(in_channels=dataset.num_node_features, out_channels=2, num_templates=3, template_nodes=5)
    torch.manual_seed(0)
    model = TFGWModel(config).init_templates(preprocessing(dataset)).eval()
    trained = TrainedModel(
        model=model,
        task="classification",
        classes=(0, 1),
        preprocessing=preprocessing,
        source={},
        encoding=encoding,
    )
    save_model(trained, path)
    return trained


def write_tu(tables: GraphTables, folder: Path) -> Path:
    return save(tables, folder, name="trees")


def write_tu_zip(tables: GraphTables, folder: Path) -> Path:
    return Path(shutil.make_archive(str(folder), "zip", write_tu(tables, folder)))


def write_json_lines(tables: GraphTables, path: Path) -> Path:
    """The graphs with identifiers; each edge is listed once."""
    assert tables.node_labels is not None
    assert tables.node_attributes is not None
    assert tables.targets is not None
    first_node, first_edge = starts(tables.node_counts), starts(tables.edge_counts)
    with path.open("w") as stream:
        for graph, (nodes, edges) in enumerate(zip(tables.node_counts, tables.edge_counts, strict=True)):
            labels = tables.node_labels[first_node[graph] : first_node[graph] + nodes, 0].tolist()
            attributes = tables.node_attributes[first_node[graph] : first_node[graph] + nodes, 0].tolist()
            pairs = tables.edges[:, first_edge[graph] : first_edge[graph] + edges].T.tolist()
            entry = {
                "id": f"tree-{graph}",
                "target": int(tables.targets[graph]),
                "nodes": [
                    {"label": label, "attributes": value} for label, value in zip(labels, attributes, strict=True)
                ],
                "edges": [{"source": a, "target": b} for a, b in pairs if a < b],
            }
            stream.write(json.dumps(entry) + "\n")
    return path

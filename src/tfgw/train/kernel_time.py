"""Estimated time to train a kernel machine, by which ``tfgw train`` decides whether to train one.

The estimate depends on the graphs alone, so that the same command trains the same kind of model on every machine. Its
constants were measured on one core (docs/recipe.md).
"""

import numpy as np

from tfgw.datasets import GraphDataset
from tfgw.nn.graph_distance import NodeDescription
from tfgw.nn.kernel_model import KernelConfig
from tfgw.nn.refinement import disjoint_union
from tfgw.train.kernel_pipeline import default_alphas, default_features, has_triangles, pair_work
from tfgw.train.kernel_ridge import LARGEST_DECOMPOSITION

AUTO_SECONDS = 1200
"""Maximum estimated CPU time for which ``tfgw train`` chooses a kernel machine: about ten minutes on two cores."""

SECONDS_OF_PAIR = 1e-6
"""Time per pair of graphs and distance that does not depend on the sizes of the graphs."""
SECONDS_OF_WORK = {"structure": 1.5e-9, "averages": 5e-10, "degrees": 1.5e-10}
"""Time per pair of graphs with n and m nodes, and distance, divided by (n m)^1.5."""
SECONDS_OF_RIDGE = {"decomposition": 1.5e-9, "factorisations": 2e-10}
"""Time of a ridge regression, divided by the third power of the number of graphs."""


def estimated_seconds(graphs: GraphDataset) -> float:
    """Estimate the CPU time to train a kernel machine with default settings on these graphs.

    Further levels of labels, which few datasets have, are not included.

    Nodes with the same averaged degrees are merged before degrees are compared, so only distinct ones count. This
    matters for dense graphs: those of COLLAB have 74 nodes, of which 32 are distinct.
    """
    sizes = [graph.num_nodes for graph in graphs]
    count, levels, features = len(sizes), len(KernelConfig.levels), default_features(graphs)
    work = levels * SECONDS_OF_WORK["degrees"] * pair_work(count_distinct_degrees(graphs))
    kinds = 2 * levels
    if features == "averages":
        work += levels * SECONDS_OF_WORK["averages"] * pair_work(sizes)
    else:
        kinds += levels  # labels with cycles
    if any(default_alphas(sizes)):
        work += levels * SECONDS_OF_WORK["structure"] * pair_work(sizes)
        kinds += levels
    is_small = count <= LARGEST_DECOMPOSITION
    kinds += not is_small and has_triangles(graphs)
    regressions = kinds if is_small else kinds + 1  # one on all distances
    ridge = SECONDS_OF_RIDGE["decomposition" if is_small else "factorisations"]
    return work + kinds * SECONDS_OF_PAIR * count**2 / 2 + regressions * ridge * count**3


def count_distinct_degrees(graphs: GraphDataset) -> list[int]:
    """Return the number of nodes of each graph with distinct averaged degrees, at the highest level."""
    x, edge_index, sizes = disjoint_union(list(graphs))
    degrees = NodeDescription("degrees", max(KernelConfig.levels)).features(x, edge_index)
    places = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.unique(np.column_stack([places, degrees.numpy()]), axis=0)
    return np.bincount(rows[:, 0].astype(int), minlength=len(sizes)).tolist()

from collections.abc import Callable
from pathlib import Path

import networkx as nx

from tfgw.datasets import Statistics, from_networkx, load, statistics


def test_known_answer(tiny: dict[str, str], write_folder: Callable[..., Path]) -> None:
    dataset = load(write_folder(tiny))
    assert statistics(dataset) == Statistics(
        name="TINY",
        graphs=3,
        classes=2,
        class_counts=(1, 2),
        mean_nodes=3.0,
        min_nodes=2,
        max_nodes=4,
        median_nodes=3.0,
        mean_edges=2.0,
        features=3,
        disconnected=1,
    )


def test_part_of_a_dataset(tiny: dict[str, str], write_folder: Callable[..., Path]) -> None:
    part = statistics(load(write_folder(tiny))[[0, 2]])
    assert (part.graphs, part.classes, part.class_counts, part.median_nodes) == (2, 2, (0, 2), 3.5)


def test_directed_edges_count_once_and_connect_weakly() -> None:
    dataset = from_networkx([nx.DiGraph([(0, 1), (1, 0), (2, 1)])], y=[0.5])
    result = statistics(dataset)
    assert (result.mean_edges, result.disconnected, result.classes, result.class_counts) == (2.0, 0, 0, ())

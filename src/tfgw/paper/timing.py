"""How long a trained model takes to predict a graph."""

import time
from typing import Any

import numpy as np

from tfgw.datasets import GraphDataset

REPEATS = 5
SINGLES = 50


def prediction_times(model: Any, graphs: GraphDataset) -> dict[str, float]:
    """Milliseconds per graph, the median of several repetitions: all graphs in one call, and one graph per call."""
    everything = list(graphs)
    together = [_seconds(model, everything) / len(everything) for _ in range(REPEATS)]
    alone = [_seconds(model, [graph]) for graph in everything[:SINGLES]]
    return {
        "ms_per_graph": round(1000 * float(np.median(together)), 4),
        "ms_one_graph": round(1000 * float(np.median(alone)), 4),
    }


def _seconds(model: Any, graphs: list[Any]) -> float:
    start = time.perf_counter()
    model.predict(graphs)
    return time.perf_counter() - start

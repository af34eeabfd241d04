"""Process the chunks of a stream on a Ray cluster, with Ray Data.

The driver splits the source into chunks and submits a few per core at a time, which bounds the memory of driver and
cluster. Ray retries the work of a process that died. The driver takes the result of each chunk once, in order.
"""

import logging
import pickle
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np

from tfgw.train.graph_stream import GraphStream, PreparedGraphs, prepare_graphs
from tfgw.train.model_file import TrainedModel

_ROUNDS = 4
"""Number of chunks per core of the cluster that are submitted at a time."""


def process_on_ray(
    stream: GraphStream, trained: TrainedModel, method: str, *, device: str, address: str | None
) -> Iterator[PreparedGraphs]:
    """Yield the chunks of ``stream`` with their results as ``columns``.

    Args:
        stream: Stream of the graphs.
        trained: The model.
        method: Name of the method of the model that computes the columns of a chunk.
        device: Device type on the workers.
        address: Address of the cluster. ``None`` starts a local one.
    """
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError("--engine ray needs Ray: pip install 'tfgw[ray]'") from error
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    prepare = partial(prepare_graphs, name=stream.name, encoding=stream.encoding, preprocessing=stream.preprocessing)
    work = pickle.dumps((trained, prepare, method, device))
    resources = {"num_cpus": 1, "num_gpus": 1 if device == "cuda" else 0}
    at_once = _ROUNDS * max(1, int(ray.cluster_resources().get("CPU", 1)))
    chunks = stream.chunks()
    while handed_out := list(islice(chunks, at_once)):
        items = [{"number": number, "chunk": pickle.dumps(chunk)} for number, chunk in enumerate(handed_out)]
        dataset = ray.data.from_items(items, override_num_blocks=len(items))
        rows = dataset.map_batches(_process_chunk, batch_size=1, fn_kwargs={"work": work}, **resources).take_all()
        yield from _in_order(rows, len(items))


def _in_order(rows: Iterable[dict[str, Any]], expected: int) -> Iterator[PreparedGraphs]:
    found = {int(row["number"]): row["result"] for row in rows}
    if sorted(found) != list(range(expected)):
        raise RuntimeError(f"Ray returned {len(found)} of {expected} chunks")
    for number in range(expected):
        result = pickle.loads(found[number])
        if isinstance(result, ValueError):  # an input error, returned because Ray would wrap it
            raise result
        yield result


def _process_chunk(batch: dict[str, np.ndarray], work: bytes) -> dict[str, list[Any]]:
    """Compute the results of one chunk on a worker."""
    trained, prepare, method, device = _unpacked(work)
    trained.model.to(device)
    try:
        graphs = prepare(pickle.loads(batch["chunk"][0]))
        columns = getattr(trained, method)(graphs) if graphs.num_graphs else {}
        nodes = {"x": np.empty((graphs.num_nodes, 0))}  # from here on, only the number of graphs matters
        result: Any = graphs._replace(arrays=nodes, columns=columns)
    except ValueError as error:
        result = error
    return {"number": [int(batch["number"][0])], "result": [pickle.dumps(result)]}


@cache
def _unpacked(work: bytes) -> Any:
    """Unpickle the model, once per process."""
    return pickle.loads(work)

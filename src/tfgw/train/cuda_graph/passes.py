"""Recorded passes over a dataset."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from tfgw.train.batches import GraphStore
from tfgw.train.cuda_graph.padded_batches import Capacity, PaddedBatch, PaddedStore
from tfgw.train.cuda_graph.recorder import Recorder
from tfgw.train.cuda_graph.steps import Step


class Pass(NamedTuple):
    """One pass over the graphs of a store, in batches. Other passes may have other graphs in their batches, but the
    batch sizes are the same."""

    store: GraphStore
    batches: list[Tensor]

    def by_size(self) -> dict[int, list[Tensor]]:
        """The batches by their number of graphs."""
        sizes = {len(graphs) for graphs in self.batches}
        return {size: [graphs for graphs in self.batches if len(graphs) == size] for size in sizes}

    def capacities(self) -> dict[int, Capacity]:
        """The padded size of batches, by their number of graphs."""
        return {size: Capacity.of(self.store, batches) for size, batches in self.by_size().items()}

    def examples(self) -> list[Tensor]:
        """Return a batch of each size, which is used for recording."""
        return [batches[0] for batches in self.by_size().values()]


class RecordedPass:
    """A step over every batch of a pass, recorded once for each batch size.

    Args:
        step: The step. Recording executes it as well.
        example: An example of the passes to replay.
        recorder: Records the step.
    """

    def __init__(self, step: Step, example: Pass, recorder: Recorder) -> None:
        self._store = PaddedStore(example.store)
        self._total = torch.zeros(2, dtype=torch.float64, device=example.store.device)
        # Without a reference to self: in a cycle, the GPU's memory would wait for Python's garbage collector.
        add = _adding(step, self._total)
        capacities = example.capacities()
        self._steps = {
            len(graphs): _RecordedStep(add, self._store, capacities[len(graphs)], graphs, recorder)
            for graphs in example.examples()
        }
        self._total.zero_()

    def replay(self, graphs: Tensor) -> bool:
        """Queue the step for these graphs on the GPU. Return False and do nothing if they exceed the capacity."""
        step = self._steps[len(graphs)]
        if not self._store.fits(graphs, step.capacity):
            return False
        step.replay(graphs)
        return True

    def total(self) -> Tensor:
        """Wait for the GPU, and return the sums of loss and score over the graphs replayed since the last call."""
        found = self._total.to("cpu", copy=True)
        self._total.zero_()
        return found


def _adding(step: Step, total: Tensor) -> Callable[[PaddedBatch], None]:
    def add(batch: PaddedBatch) -> None:
        total.add_(step(batch))

    return add


class _RecordedStep:
    def __init__(
        self,
        function: Callable[[PaddedBatch], None],
        store: PaddedStore,
        capacity: Capacity,
        example: Tensor,
        recorder: Recorder,
    ) -> None:
        self.capacity = capacity
        self._graphs = example.to(store.device)
        self._replay = recorder.record(lambda: function(store.batch(self._graphs, capacity)))

    def replay(self, graphs: Tensor) -> None:
        # From pinned memory, so that the copy is asynchronous.
        self._graphs.copy_(graphs.pin_memory() if self._graphs.is_cuda else graphs, non_blocking=True)
        self._replay()

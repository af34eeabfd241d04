"""Passes over a dataset as CUDA graphs: the GPU does not wait for Python.

A step of a small model is some hundred calls of PyTorch, which take the host ten times as long as the GPU. Here they
are made once, for a batch padded to a fixed size, and recorded; to replay them for other graphs is a single call.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINConv, SumAggregation

from tfgw.nn import TFGWModel, TFGWPooling
from tfgw.nn.batch_norm import BatchNorm
from tfgw.nn.encoders import GINEncoder
from tfgw.nn.linear import Linear
from tfgw.nn.padding import use_padding
from tfgw.ot import START_KINDS
from tfgw.ot.cuda.gpu import gpu
from tfgw.train.batches import GraphStore
from tfgw.train.evaluate import evaluation_mode
from tfgw.train.padded_batches import PaddedBatch, PaddedStore, Room, lengths_of
from tfgw.train.tasks import Task, sums
from tfgw.train.watched import is_watched


class Pass(NamedTuple):
    """All graphs of a store once, in batches: an example, for passes differ in which graphs a batch has, not in how
    many."""

    store: GraphStore
    batches: list[Tensor]

    def by_size(self) -> dict[int, list[Tensor]]:
        """The batches by their number of graphs."""
        sizes = {len(graphs) for graphs in self.batches}
        return {size: [graphs for graphs in self.batches if len(graphs) == size] for size in sizes}

    def examples(self) -> list[Tensor]:
        """A batch of each size, with which steps are recorded."""
        return [batches[0] for batches in self.by_size().values()]


Compute = Callable[[PaddedBatch], Tensor]
"""What is done with a batch; returns the sums of loss and score over its graphs."""


PARTS = {TFGWModel, TFGWPooling, GINEncoder, GINConv, SumAggregation, BatchNorm, Linear, nn.ModuleList, nn.Sequential,
         nn.ReLU, nn.Dropout}  # fmt: skip
"""Modules that know of padding, or treat every row for itself."""


def can_be_captured(model: nn.Module, passes: list[Pass]) -> bool:
    """Whether a GPU can do all of it, and nobody watches: what is replayed calls no Python."""
    if not (type(model) is TFGWModel and {type(module) for module in model.modules()} <= PARTS):
        return False
    layer = model.pool
    is_usual = layer.structure == "adjacency" and layer.n_starts == 1 and layer.start_kinds == START_KINDS
    given = [one.store.tensors.keys() for one in passes]
    has_usual_graphs = all("y" in names and "structure" not in names for names in given)
    if not (is_usual and has_usual_graphs) or is_watched(model):
        return False
    return all(_gpu_can_solve(layer, one) for one in passes)


def _gpu_can_solve(layer: TFGWPooling, one: Pass) -> bool:
    """Whether the graphs are on a GPU that solves padded batches of them, and has room for them all."""
    device = torch.device(one.store.device)
    if device.type != "cuda":
        return False
    host, shape = gpu(device.index).host, (layer.num_templates, layer.template_nodes)
    rooms = {size: Room.of(one.store, batches) for size, batches in one.by_size().items()}
    if any(host.reason_not_to(size, room.nodes, *shape, False) for size, room in rooms.items()):
        return False
    nodes, edges = (int(lengths.sum()) for lengths in lengths_of(one.store))
    takes = 8 * (nodes * (layer.in_channels + 2) + 3 * edges)  # features, weights, and which graph; ends, weights
    return takes <= torch.cuda.mem_get_info(device)[0] / 4


def training_step(model: nn.Module, optimizer: torch.optim.Adam, task: Task) -> Compute:
    """A step of a fused optimiser; it is left out where the loss is not finite."""
    for group in optimizer.param_groups:
        group["capturable"] = True

    def step(batch: PaddedBatch) -> Tensor:
        with use_padding(batch.rows):
            measured = sums(task, model(**batch.inputs), batch.y)
        (measured.loss / len(batch.y)).backward()
        # The host cannot look before the step: this is how PyTorch's own gradient scaler lets an optimiser skip it.
        optimizer.found_inf = (~measured.loss.detach().isfinite()).float()  # type: ignore[attr-defined]
        optimizer.step()
        del optimizer.found_inf  # type: ignore[attr-defined]
        optimizer.zero_grad()
        return torch.stack([measured.loss.detach(), measured.score]).double()

    return step


def validation_step(model: nn.Module, task: Task) -> Compute:
    """Loss and score alone."""

    def step(batch: PaddedBatch) -> Tensor:
        with evaluation_mode(model), use_padding(batch.rows):
            return torch.stack(sums(task, model(**batch.inputs), batch.y)).double()

    return step


@contextmanager
def unchanged(model: nn.Module, optimizer: torch.optim.Adam) -> Iterator[None]:
    """What is computed inside the block leaves weights and the optimiser's state as they were, in the same memory."""
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    moments = {parameter: {k: v.clone() for k, v in state.items()} for parameter, state in optimizer.state.items()}
    try:
        yield
    finally:
        model.load_state_dict(weights)
        for parameter, state in optimizer.state.items():
            for name, tensor in state.items():
                before = moments.get(parameter)
                tensor.zero_() if before is None else tensor.copy_(before[name])  # Adam begins with zeros


class Recorder:
    """Turns functions into CUDA graphs, of which one runs at a time: they share their memory. See :func:`recording`."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        """Call ``function``, then record a call; returns what replays it."""
        function()  # libraries prepare what they cannot while they are recorded
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        # In the default mode, nobody else in the process could ask for memory of the GPU meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"):
            function()
        return graph.replay


@contextmanager
def recording() -> Iterator[Recorder]:
    """A recorder, and a block in the stream in which everything is recorded, with nobody else there."""
    here, stream = torch.cuda.current_stream(), _stream_for_graphs(torch.cuda.current_device())
    with _one_at_a_time:
        stream.wait_stream(here)
        try:
            with torch.cuda.stream(stream):
                yield Recorder()
        finally:
            here.wait_stream(stream)
            torch.cuda.empty_cache()  # what was only needed there


@cache
def _stream_for_graphs(device: int) -> torch.cuda.Stream:
    """Always the same: cuBLAS has memory of its own in each stream that it ever saw, and keeps it."""
    return torch.cuda.Stream(device)


_one_at_a_time = Lock()


class CapturedPass:
    """Something that is done with every batch of a pass, recorded once for each size.

    Args:
        compute: What is done. It is done while it is recorded, too.
        one: Such a pass.
        recorder: Records it.
    """

    def __init__(self, compute: Compute, one: Pass, recorder: Recorder) -> None:
        self._store = PaddedStore(one.store)
        self._total = torch.zeros(2, dtype=torch.float64, device=one.store.device)
        add = _adding(compute, self._total)  # which must not lead back here, or a GPU's memory waits for the collector
        self._steps = {
            len(graphs): _Step(add, self._store, Room.of(one.store, one.by_size()[len(graphs)]), graphs, recorder)
            for graphs in one.examples()
        }
        self._total.zero_()

    def take(self, graphs: Tensor) -> bool:
        """Have the GPU do it with these graphs, after all that it was given before; False if they have no room."""
        step = self._steps[len(graphs)]
        if not self._store.has_room(graphs, step.room):
            return False
        step.replay(graphs)
        return True

    def total(self) -> Tensor:
        """Sums of loss and score over the graphs taken since the last time; waits for the GPU."""
        found = self._total.to("cpu", copy=True)
        self._total.zero_()
        return found


def _adding(compute: Compute, total: Tensor) -> Callable[[PaddedBatch], None]:
    def add(batch: PaddedBatch) -> None:
        total.add_(compute(batch))

    return add


class _Step:
    def __init__(
        self, function: Callable[[PaddedBatch], None], store: PaddedStore, room: Room, first: Tensor, recorder: Recorder
    ) -> None:
        self.room = room
        self._graphs = first.to(store.device)
        self._replay = recorder.record(lambda: function(store.batch(self._graphs, room)))

    def replay(self, graphs: Tensor) -> None:
        # From pinned memory, so that the host goes on at once.
        self._graphs.copy_(graphs.pin_memory() if self._graphs.is_cuda else graphs, non_blocking=True)
        self._replay()

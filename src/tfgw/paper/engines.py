"""Engines that run cells: processes on this machine (joblib), or a Ray cluster.

An engine takes cells and yields their records as they finish, in any order. If a process dies, its cells are retried. A
cell that kills its process every time gets a record of the failure.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from threading import Thread
from typing import NamedTuple

import joblib
import torch
from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError

from tfgw.paper.cells import Cell
from tfgw.paper.records import Record, Records, is_done, key_of
from tfgw.paper.run_cell import run_cell
from tfgw.paper.run_context import RunContext

CELL_BYTES = 4 * 2**30
"""Upper estimate of the GPU memory that a cell needs."""

RETRIES = 3

WATCH_SECONDS = 0.5
"""Interval at which a worker checks that its parent is alive."""


class Allocation(NamedTuple):
    """Number of parallel cells, and threads and share of a GPU per cell."""

    jobs: int
    threads: int
    gpu: float


def allocate(cells: int, *, jobs: int | None, accelerator: str, per_gpu: int | None) -> Allocation:
    """Allocate the resources of this machine: one thread per core at most, and as many cells as fit on the GPUs."""
    cores = joblib.cpu_count()
    gpus = _gpus() if accelerator != "cpu" else []
    if accelerator == "cuda" and not gpus:
        raise ValueError("accelerator: 'cuda' was requested, but there is no GPU")
    if gpus:
        fit = min(free // CELL_BYTES for free in gpus)
        per_gpu = per_gpu or max(1, min(fit, cores // len(gpus)))
        at_most = per_gpu * len(gpus)
        jobs = min(jobs or at_most, at_most)
    count = max(1, min(jobs or cores, cells))
    return Allocation(count, max(1, cores // count), 1 / (per_gpu or 1) if gpus else 0.0)


def run_locally(cells: Sequence[Cell], context: RunContext, *, jobs: int) -> Iterator[Record]:
    """Run cells in ``jobs`` processes."""
    records, waiting = Records(context.results), {cell.key: cell for cell in cells}
    while waiting:
        before = len(waiting)
        try:
            for record in _run_parallel(list(waiting.values()), context, jobs):
                waiting.pop(key_of(record))
                yield record
        except TerminatedWorkerError:
            found = [records.get(cell) for cell in waiting.values()]
            for record in (record for record in found if record is not None and is_done(record)):
                waiting.pop(key_of(record))
                yield record
            # No cell has finished since the last attempt, so one of the first cells may be killing its process.
            suspects = list(waiting.values())[:jobs] if len(waiting) == before else []
            for cell in suspects:
                waiting.pop(cell.key)
                yield _run_alone(cell, context)


def run_on_ray(cells: Sequence[Cell], context: RunContext, *, address: str | None, gpu: float) -> Iterator[Record]:
    """Run cells on the Ray cluster at ``address``. ``None`` starts a local one.

    This uses Ray tasks, which Ray restarts after a failure, instead of the Ray backend of joblib, whose pool of actors
    becomes unusable when a process dies.
    """
    try:
        import ray
    except ImportError as error:
        raise ValueError("engine: Ray is not installed; pip install 'tfgw[ray]'") from error
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    task = ray.remote(run_cell).options(num_cpus=context.threads, num_gpus=gpu, max_retries=RETRIES)
    records, running = Records(context.results), {task.remote(cell, context): cell for cell in cells}
    while running:
        (reference,), _ = ray.wait(list(running), num_returns=1)
        cell = running.pop(reference)
        try:
            record = ray.get(reference)
        except ray.exceptions.RayError as error:
            record = _killed_record(cell, f"{type(error).__name__}, {RETRIES + 1} times")
        records.put(record)  # the worker may have written it to another disk
        yield record


def _run_parallel(cells: list[Cell], context: RunContext, jobs: int) -> Iterator[Record]:
    workers = {"initializer": _exit_with, "initargs": (os.getpid(),)}
    with parallel_config(backend="loky", inner_max_num_threads=context.threads, **workers):
        parallel = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
        yield from parallel(delayed(_run_on_own_gpu)(cell, context) for cell in cells)


def _run_alone(cell: Cell, context: RunContext) -> Record:
    try:
        (record,) = _run_parallel([cell], context, jobs=2)  # jobs=2, because a single job would run in this process
    except TerminatedWorkerError:
        record = _killed_record(cell, "its process was killed, possibly because it ran out of memory")
        Records(context.results).put(record)
    return record


def _killed_record(cell: Cell, why: str) -> Record:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"cell": cell.as_dict(), "status": "failed", "killed": True, "error": why, "run": {"finished": now}}


def _exit_with(parent: int) -> None:
    """Exit this worker when its parent has ended, even if the parent was killed.

    A thread watches the parent. Linux's ``PR_SET_PDEATHSIG`` would follow the thread that started the worker.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    Thread(target=watch, name="tfgw-parent", daemon=True).start()


def _run_on_own_gpu(cell: Cell, context: RunContext) -> Record:
    """Run a cell on the GPU of this worker; GPUs are assigned to workers in turn."""
    worker = multiprocessing.current_process().name.rpartition("-")[2]
    if context.accelerator != "cpu" and worker.isdigit() and not torch.cuda.is_initialized():
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        gpus = visible.split(",") if visible else [str(number) for number in range(torch.cuda.device_count())]
        if len(gpus) > 1:
            os.environ["CUDA_VISIBLE_DEVICES"] = gpus[int(worker) % len(gpus)]
    return run_cell(cell, context)


def _gpus() -> list[int]:
    """Return the free memory of each GPU in bytes."""
    return [torch.cuda.mem_get_info(number)[0] for number in range(torch.cuda.device_count())]

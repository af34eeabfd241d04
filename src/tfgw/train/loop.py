"""The training loop, based on Lightning Fabric.

fit ─▶ one process, or one per device ─▶ every epoch: batches ─ forward ─ backward ─ step ─ project
                                      ─▶ every few epochs: validate ─ keep ─ checkpoint
"""

import copy
import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch_geometric.data import InMemoryDataset

from tfgw.nn.threads import networks_on_one_thread
from tfgw.train.checkpoint import FILE_NAME
from tfgw.train.config import DTYPES, TrainConfig, device_of
from tfgw.train.history import EpochRecord, Kept, describe_records, read_records
from tfgw.train.interruption import finishing_epochs
from tfgw.train.reporting import Reporter
from tfgw.train.tensor_file import read_tensors, write_tensors
from tfgw.train.trainer import Job, Trainer


class FitResult(NamedTuple):
    """Result of a training run.

    Attributes:
        records: One :class:`EpochRecord` per epoch.
        kept: The selected epoch, whose weights the model has. ``None`` without validation, when the model has the
            weights of the last epoch.
    """

    records: list[EpochRecord]
    kept: Kept | None


Outcome = tuple[FitResult, dict[str, Tensor]]


def fit(
    model: nn.Module,
    train: InMemoryDataset,
    validation: InMemoryDataset | None = None,
    *,
    config: TrainConfig,
    folder: Path | None = None,
    resume: bool = False,
    progress_bar: bool = False,
    tensorboard: bool = False,
) -> FitResult:
    """Train ``model`` in place.

    After training, the model has the weights of the epoch that the paper's rule selects (:func:`is_worth_keeping`), or
    those of the last epoch if there are no ``validation`` graphs.

    Args:
        model: Network to train. It is called as ``model(x=..., edge_index=..., batch=..., batch_size=...)``, and with
            ``edge_weight``, ``structure`` and ``node_weights`` if the graphs have them. It is converted to
            ``config.precision``. If a call sets the attribute ``auxiliary_loss``, it is added to the mean loss.
        train: Training graphs, with targets ``y``. The loss of a graph is multiplied by its ``graph_weight`` if it has
            one (:func:`tfgw.train.graph_weights.with_graph_weights`).
        validation: Validation graphs.
        config: Training settings.
        folder: Folder for the checkpoint and TensorBoard logs. ``None`` writes neither. With a folder, Ctrl-C stops the
            run after the current epoch and saves a checkpoint.
        resume: Whether to continue from the checkpoint in ``folder``, if there is one. The final weights are those of
            an uninterrupted run, provided that ``model`` has the same initial state.
        progress_bar: Whether to show a progress bar on standard error.
        tensorboard: Whether to write TensorBoard logs; requires ``folder``.
    """
    if folder is None and (resume or tensorboard):
        raise ValueError("folder: required for resume and tensorboard")
    if config.patience is not None and validation is None:
        raise ValueError("patience: early stopping requires validation graphs")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / FILE_NAME).exists() and not resume:
            raise FileExistsError(
                f"folder: {folder} has the checkpoint of another run; resume it or choose another folder"
            )
    job = Job(
        model=model.to(DTYPES[config.precision]),
        train=train,
        validation=validation,
        config=config,
        folder=folder,
        resume=resume,
        progress_bar=progress_bar,
        tensorboard=tensorboard,
    )
    result, weights = (_train if config.devices == 1 else _train_in_processes)(_fabric(config), job)
    model.load_state_dict(weights)
    return result


def _is_relevant(record: logging.LogRecord) -> bool:
    """Whether to show a message of Lightning; those about the precision of matrix products are not useful here."""
    return "Tensor Cores" not in record.getMessage()


logging.getLogger("lightning_fabric.utilities.rank_zero").addFilter(_is_relevant)


def _fabric(config: TrainConfig) -> Fabric:
    return Fabric(
        accelerator=device_of(config.accelerator),
        devices=config.devices,
        strategy="ddp_spawn" if config.devices > 1 else "auto",
        # Fabric's own 64-bit mode rounds outputs to 32 bits; `fit` converts the model instead.
        precision="bf16-mixed" if config.precision == "bf16" else "32-true",
    )


def _train_in_processes(fabric: Fabric, job: Job) -> Outcome:
    """Start one process per device. The result is returned in a file: the parent reads results only after the processes
    have ended, and a full pipe would block them."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "outcome.safetensors"
        fabric.launch(partial(_train_into_file, job=job, path=path))
        weights, description = read_tensors(path, kind="outcome")
    return FitResult(*read_records(description)), weights


def _train_into_file(fabric: Fabric, job: Job, path: Path) -> None:
    # Tensors are passed to a new process in shared memory, but each process needs its own model.
    result, weights = _train(fabric, replace(job, model=copy.deepcopy(job.model)))
    if fabric.is_global_zero:
        write_tensors(path, weights, describe_records(*result), kind="outcome")
    # Fabric leaves Gloo's threads running, and a process that exits before they end is sometimes aborted.
    torch.distributed.destroy_process_group()


def _train(fabric: Fabric, job: Job) -> Outcome:
    is_first = fabric.is_global_zero
    is_resumable = job.folder is not None and fabric.world_size == 1
    with torch.random.fork_rng(), networks_on_one_thread(), finishing_epochs(is_resumable) as interruption:
        trainer = Trainer(fabric, job)
        reporter = Reporter(
            epochs=job.config.epochs,
            done=trainer.progress.epoch,
            bar=job.progress_bar and is_first,
            folder=job.folder / "tensorboard" if job.folder and job.tensorboard and is_first else None,
        )
        try:
            while not trainer.is_finished():
                reporter.show(trainer.train_epoch())
                if interruption.requested:
                    trainer.save_checkpoint()
                    raise KeyboardInterrupt
        finally:
            reporter.close()
        return FitResult(trainer.progress.records, trainer.progress.kept), trainer.final_weights()

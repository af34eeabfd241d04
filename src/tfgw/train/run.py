"""One process's part of a training run: epochs, validations, checkpoints."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch_geometric.data import InMemoryDataset

from tfgw.nn import TemplateLayer, project_after_step
from tfgw.train.batches import GraphStore, epoch_batches, shuffled
from tfgw.train.checkpoint import FILE_NAME, Progress, load_checkpoint, save_checkpoint
from tfgw.train.config import Precision, TrainConfig
from tfgw.train.evaluate import Evaluation, evaluation_mode
from tfgw.train.records import EpochRecord, Kept, is_worth_keeping
from tfgw.train.reporting import template_figures
from tfgw.train.tasks import Sums, sums

DTYPES: dict[Precision, torch.dtype] = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bf16": torch.float32,
}


@dataclass(frozen=True, kw_only=True)
class Job:
    """What there is to train; as in :func:`tfgw.train.fit`."""

    model: nn.Module
    train: InMemoryDataset
    validation: InMemoryDataset | None
    config: TrainConfig
    folder: Path | None
    resume: bool
    progress_bar: bool
    tensorboard: bool


class Run:
    """The state of a job between epochs, and how it gets from one to the next."""

    def __init__(self, fabric: Fabric, job: Job) -> None:
        self.fabric, self.config, self.module = fabric, job.config, job.model
        dtype = DTYPES[job.config.precision]
        self.train = GraphStore(job.train, dtype=dtype, device=fabric.device)
        if self.train.y is None:
            raise ValueError("train: the graphs have no target y to learn")
        self.validation = None
        if job.validation is not None:
            self.validation = GraphStore(job.validation, dtype=dtype, device=fabric.device)
        self.plain_optimizer = _optimizer(self.module, job.config)
        self.model, self.optimizer = fabric.setup(self.module, self.plain_optimizer)
        self.progress = Progress()
        if job.resume and job.folder is not None and (job.folder / FILE_NAME).exists():
            self.progress = load_checkpoint(job.folder, self.module, self.plain_optimizer, job.config)
        self.checkpoint_folder = job.folder if fabric.is_global_zero else None
        self.last_checkpoint = time.monotonic()

    def is_finished(self) -> bool:
        """Whether all epochs are done, or nothing was worth keeping for longer than the patience."""
        progress, patience = self.progress, self.config.patience
        waited = progress.epoch - (progress.kept.epoch if progress.kept else 0)
        return progress.epoch >= self.config.epochs or (patience is not None and waited >= patience)

    def train_epoch(self) -> EpochRecord:
        """One pass over the training graphs, with validation and checkpoint when it is time for them."""
        epoch = self.progress.epoch + 1
        trained = self._pass(epoch)
        is_time_to_validate = epoch == self.config.epochs or epoch % self.config.validate_every == 0
        validated = self._validate() if is_time_to_validate and self.validation is not None else None
        record = EpochRecord(
            epoch=epoch,
            loss=trained.loss,
            score=trained.score,
            validation_loss=validated.loss if validated else None,
            validation_score=validated.score if validated else None,
            **template_figures(self.module),
        )
        self._note(record)
        self._checkpoint()
        return record

    def final_weights(self) -> dict[str, Tensor]:
        """The kept weights; without validation, those of now."""
        return self.progress.kept_weights if self.progress.kept else self.module.state_dict()

    def _note(self, record: EpochRecord) -> None:
        self.progress.epoch = record.epoch
        self.progress.records.append(record)
        if is_worth_keeping(record, self.progress.kept):
            self.progress.kept = Kept(record.epoch, record.score, cast(float, record.validation_score))
            weights = self.module.state_dict().items()
            self.progress.kept_weights = {name: tensor.detach().clone() for name, tensor in weights}

    def _checkpoint(self) -> None:
        is_due = time.monotonic() - self.last_checkpoint >= self.config.checkpoint_seconds
        if self.checkpoint_folder is not None and (is_due or self.is_finished()):
            save_checkpoint(self.checkpoint_folder, self.progress, self.module, self.plain_optimizer, self.config)
            self.last_checkpoint = time.monotonic()

    def _pass(self, epoch: int) -> Evaluation:
        self.model.train()
        torch.manual_seed(_seed(self.config.seed, epoch, self.fabric.global_rank))
        total = torch.zeros(2, dtype=torch.float64)
        for graphs in self._batches(epoch):
            total += self._step(graphs, epoch)
        return self._mean(total, len(self.train))

    def _batches(self, epoch: int) -> list[Tensor]:
        rng = np.random.default_rng([self.config.seed, epoch])
        classes = self.train.y if self.config.stratified else None
        order = shuffled(len(self.train), rng=rng, classes=classes)
        return epoch_batches(order, self.config.batch_size, smallest=2 * self.fabric.world_size)

    def _step(self, graphs: Tensor, epoch: int) -> Tensor:
        measured = self._forward(self.train, self._share(graphs))
        figures = _Figures(measured)
        # Gradients are averaged over processes: this makes them those of the mean over the whole batch.
        loss = measured.loss * self.fabric.world_size / len(graphs)
        self.fabric.backward(loss + getattr(self.module, "auxiliary_loss", 0.0))
        found = figures.values()  # waits for the forward only: a GPU has the backward to do meanwhile
        if not bool(found[0].isfinite()):
            raise FloatingPointError(f"the loss of epoch {epoch} is not finite; try a smaller learning rate")
        self.optimizer.step()
        self.optimizer.zero_grad()
        return found

    def _validate(self) -> Evaluation:
        store = cast(GraphStore, self.validation)
        total = torch.zeros(2, dtype=torch.float64)
        share = self._share(torch.arange(len(store)))
        with evaluation_mode(self.model):
            found = [_Figures(self._forward(store, graphs)) for graphs in share.split(self.config.batch_size)]
        for figures in found:
            total += figures.values()
        return self._mean(total, len(store))

    def _forward(self, store: GraphStore, graphs: Tensor) -> Sums:
        batch = store.batch(graphs)
        if batch.y is None:
            raise ValueError("validation: the graphs have no target y to compare with")
        return sums(self.config.task, self.model(**batch.inputs), batch.y)

    def _share(self, graphs: Tensor) -> Tensor:
        return graphs[self.fabric.global_rank :: self.fabric.world_size]

    def _mean(self, total: Tensor, count: int) -> Evaluation:
        summed = self.fabric.all_reduce(total.to(self.fabric.device), reduce_op="sum")
        loss, score = (cast(Tensor, summed) / count).tolist()
        return Evaluation(loss, score)


def _optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    layers = [layer for layer in model.modules() if isinstance(layer, TemplateLayer)]
    templates = [parameter for layer in layers for parameter in layer.parameters()]
    in_templates = {id(parameter) for parameter in templates}
    networks = [parameter for parameter in model.parameters() if id(parameter) not in in_templates]
    groups: list[dict[str, Any]] = [{"params": networks}]
    if templates:
        groups.append({"params": templates, "lr": config.template_lr or config.lr})
    optimizer = torch.optim.Adam(groups, lr=config.lr, betas=config.betas, fused=True)
    if layers:
        project_after_step(optimizer, model)
    return optimizer


class _Figures:
    """Loss and score of a batch on their way to the host, for which a GPU need not stop."""

    def __init__(self, measured: Sums) -> None:
        figures = torch.stack([measured.loss.detach(), measured.score]).double()
        self._values = figures.to("cpu", non_blocking=figures.is_cuda)
        self._arrival = torch.cuda.current_stream(figures.device).record_event() if figures.is_cuda else None

    def values(self) -> Tensor:
        """Both, once they have arrived."""
        if self._arrival is not None:
            self._arrival.synchronize()
        return self._values


def _seed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))

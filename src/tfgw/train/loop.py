"""Training on Lightning Fabric.

fit ─▶ one process, or one per device ─▶ every epoch: batches ─ forward ─ backward ─ step ─ project
                                                      ─▶ every few epochs: validate ─ keep ─ checkpoint
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
from tfgw.train.reporting import Reporter, template_figures
from tfgw.train.tasks import sums

DTYPES: dict[Precision, torch.dtype] = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bf16": torch.float32,
}


class FitResult(NamedTuple):
    """How a training went.

    Attributes:
        records: One :class:`EpochRecord` per epoch.
        kept: The epoch whose weights the model has now; ``None`` if there was no validation: those of the last epoch.
    """

    records: list[EpochRecord]
    kept: Kept | None


@dataclass(frozen=True, kw_only=True)
class _Job:
    model: nn.Module
    train: InMemoryDataset
    validation: InMemoryDataset | None
    config: TrainConfig
    folder: Path | None
    resume: bool
    progress_bar: bool
    tensorboard: bool


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
    """Train ``model`` in place and leave it with the weights worth keeping.

    With ``validation`` graphs these are chosen by the paper's rule (:func:`is_worth_keeping`); without, they are those
    of the last epoch.

    Args:
        model: Called as ``model(x=..., edge_index=..., batch=..., batch_size=...)``, and with ``edge_weight``,
            ``structure`` and ``node_weights`` where the graphs have them. It is converted to ``config.precision``.
        train: Training graphs, with targets ``y``.
        validation: Validation graphs.
        config: The settings.
        folder: Where to keep a checkpoint, and TensorBoard's files; ``None``: nowhere.
        resume: Go on from the checkpoint in ``folder`` if there is one, to the weights an undisturbed run ends with.
        progress_bar: Whether to show one on the standard error stream.
        tensorboard: Whether to write TensorBoard's files; needs ``folder``.
    """
    if folder is None and (resume or tensorboard):
        raise ValueError("folder: missing; resume and tensorboard need one")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / FILE_NAME).exists() and not resume:
            raise FileExistsError(
                f"{folder}: has the checkpoint of another run; resume it, or choose another folder"
            )
    if config.patience is not None and validation is None:
        raise ValueError("patience: early stopping needs validation graphs")
    job = _Job(
        model=model.to(DTYPES[config.precision]),
        train=train,
        validation=validation,
        config=config,
        folder=folder,
        resume=resume,
        progress_bar=progress_bar,
        tensorboard=tensorboard,
    )
    fabric = _fabric(config)
    # Several processes are started afresh and hand the weights back: the model of this process is not theirs.
    result, weights = fabric.launch(_train, job) if config.devices > 1 else _train(fabric, job)
    model.load_state_dict(weights)
    return result


def _fabric(config: TrainConfig) -> Fabric:
    # Fabric's own 64-bit mode rounds outputs to 32 bits; the model is converted in `fit` and stays as it is.
    precision = "bf16-mixed" if config.precision == "bf16" else "32-true"
    strategy = "ddp_spawn" if config.devices > 1 else "auto"
    return Fabric(
        accelerator=config.accelerator,
        devices=config.devices,
        strategy=strategy,
        precision=precision,  # type: ignore[arg-type]
    )


def _train(fabric: Fabric, job: _Job) -> tuple[FitResult, dict[str, Tensor]]:
    with torch.random.fork_rng():
        run = _Run(fabric, job)
        reporter = Reporter(
            epochs=job.config.epochs,
            done=run.progress.epoch,
            bar=job.progress_bar and fabric.is_global_zero,
            folder=job.folder / "tensorboard"
            if job.tensorboard and job.folder and fabric.is_global_zero
            else None,
        )
        try:
            while not run.is_finished():
                reporter.show(run.train_epoch())
        finally:
            reporter.close()
    progress = run.progress
    weights = progress.kept_weights if progress.kept else run.module.state_dict()
    cpu_weights = {name: tensor.cpu() for name, tensor in weights.items()}
    return FitResult(progress.records, progress.kept), cpu_weights


def _optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    layers = [layer for layer in model.modules() if isinstance(layer, TemplateLayer)]
    templates = [parameter for layer in layers for parameter in layer.parameters()]
    in_templates = {id(parameter) for parameter in templates}
    networks = [parameter for parameter in model.parameters() if id(parameter) not in in_templates]
    groups = [{"params": networks}, {"params": templates, "lr": config.template_lr or config.lr}]
    filled = [group for group in groups if group["params"]]
    optimizer = torch.optim.Adam(filled, lr=config.lr, betas=config.betas, fused=True)
    if layers:
        project_after_step(optimizer, model)
    return optimizer


class _Run:
    """One process's part of a training run."""

    def __init__(self, fabric: Fabric, job: _Job) -> None:
        self.fabric, self.config, self.folder = fabric, job.config, job.folder
        self.module = job.model
        optimizer = _optimizer(self.module, job.config)
        self.model, self.optimizer = fabric.setup(self.module, optimizer)
        self.raw_optimizer = optimizer
        dtype = DTYPES[job.config.precision]
        self.train = GraphStore(job.train, dtype=dtype, device=fabric.device)
        if self.train.y is None:
            raise ValueError("train: the graphs have no target y to learn")
        self.validation = job.validation and GraphStore(job.validation, dtype=dtype, device=fabric.device)
        self.progress = Progress()
        if job.resume and job.folder is not None and (job.folder / FILE_NAME).exists():
            self.progress = load_checkpoint(job.folder, self.module, optimizer, job.config)

    def is_finished(self) -> bool:
        """Whether all epochs are done, or nothing was worth keeping for longer than the patience."""
        progress, patience = self.progress, self.config.patience
        waited = progress.epoch - (progress.kept.epoch if progress.kept else 0)
        return progress.epoch >= self.config.epochs or (patience is not None and waited >= patience)

    def train_epoch(self) -> EpochRecord:
        """One pass over the training graphs, with validation and checkpoint when it is time for them."""
        epoch = self.progress.epoch + 1
        trained = self._pass(epoch)
        is_last = epoch == self.config.epochs
        is_time = is_last or epoch % self.config.validate_every == 0
        validated = self._validate() if is_time and self.validation is not None else None
        record = EpochRecord(
            epoch=epoch,
            loss=trained.loss,
            score=trained.score,
            validation_loss=validated.loss if validated else None,
            validation_score=validated.score if validated else None,
            **template_figures(self.module),
        )
        self.progress.epoch = epoch
        self.progress.records.append(record)
        if is_worth_keeping(record, self.progress.kept):
            assert record.validation_score is not None
            self.progress.kept = Kept(epoch, record.score, record.validation_score)
            self.progress.kept_weights = {k: t.detach().clone() for k, t in self.module.state_dict().items()}
        if is_time and self.folder is not None and self.fabric.is_global_zero:
            save_checkpoint(self.folder, self.progress, self.module, self.raw_optimizer, self.config)
        return record

    def _pass(self, epoch: int) -> Evaluation:
        self.model.train()
        torch.manual_seed(_seed(self.config.seed, epoch, self.fabric.global_rank))
        total = torch.zeros(2, dtype=torch.float64)
        for graphs in self._batches(epoch):
            total += self._step(graphs)
        return self._mean(total, len(self.train), epoch)

    def _batches(self, epoch: int) -> list[Tensor]:
        rng = np.random.default_rng([self.config.seed, epoch])
        order = shuffled(len(self.train), rng=rng, classes=self.train.y if self.config.stratified else None)
        return epoch_batches(order, self.config.batch_size, smallest=2 * self.fabric.world_size)

    def _step(self, graphs: Tensor) -> Tensor:
        batch = self.train.batch(self._share(graphs))
        loss, score = sums(self.config.task, self.model(**batch.inputs), batch.y)
        # Gradients are averaged over processes: this makes them those of the mean over the whole batch.
        self.fabric.backward(loss * self.fabric.world_size / len(graphs))
        self.optimizer.step()
        self.optimizer.zero_grad()
        return torch.stack([loss.detach(), score]).double().cpu()

    def _share(self, graphs: Tensor) -> Tensor:
        return graphs[self.fabric.global_rank :: self.fabric.world_size]

    def _validate(self) -> Evaluation:
        assert self.validation is not None
        total = torch.zeros(2, dtype=torch.float64)
        with evaluation_mode(self.model):
            for graphs in self._share(torch.arange(len(self.validation))).split(self.config.batch_size):
                batch = self.validation.batch(graphs)
                total += (
                    torch.stack(sums(self.config.task, self.model(**batch.inputs), batch.y)).double().cpu()
                )
        return self._mean(total, len(self.validation), self.progress.epoch)

    def _mean(self, total: Tensor, count: int, epoch: int) -> Evaluation:
        summed = self.fabric.all_reduce(total.to(self.fabric.device), reduce_op="sum")
        loss, score = (summed / count).tolist()
        if not np.isfinite(loss):
            raise FloatingPointError(f"the loss of epoch {epoch} is not finite; try a smaller learning rate")
        return Evaluation(loss, score)


def _seed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))

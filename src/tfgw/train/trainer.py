"""Training in one process: epochs, validations, checkpoints."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch_geometric.data import InMemoryDataset

from tfgw.train.async_host_copy import AsyncHostCopy
from tfgw.train.batch_statistics import refresh_statistics
from tfgw.train.batches import GraphStore
from tfgw.train.checkpoint import FILE_NAME, Progress, load_checkpoint, save_checkpoint
from tfgw.train.config import DTYPES, TrainConfig
from tfgw.train.cuda_graph import (
    Pass,
    RecordedPass,
    recording,
    restored,
    training_step,
    unsupported_reason,
    validation_step,
)
from tfgw.train.epoch_plan import EpochPlan
from tfgw.train.evaluate import Evaluation, evaluation_mode
from tfgw.train.history import EpochRecord, Kept, is_worth_keeping, reaches_best
from tfgw.train.optimizer import LearningRates, new_optimizer
from tfgw.train.reporting import template_values
from tfgw.train.tasks import Sums, sums


@dataclass(frozen=True, kw_only=True)
class Job:
    """The arguments of :func:`tfgw.train.fit`."""

    model: nn.Module
    train: InMemoryDataset
    validation: InMemoryDataset | None
    config: TrainConfig
    folder: Path | None
    resume: bool
    progress_bar: bool
    tensorboard: bool


class RecordedPasses(NamedTuple):
    """Passes recorded as CUDA graphs; ``None`` if a pass is not recorded or not needed.

    Attributes:
        training: The steps of an epoch.
        validation: Evaluation of the validation graphs.
        evaluation: Evaluation of the training graphs.
    """

    training: RecordedPass | None = None
    validation: RecordedPass | None = None
    evaluation: RecordedPass | None = None


class Trainer:
    """The state of a job between two epochs; :meth:`train_epoch` advances it by one."""

    def __init__(self, fabric: Fabric, job: Job) -> None:
        self.fabric, self.config, self.module = fabric, job.config, job.model
        dtype = DTYPES[job.config.precision]
        self.train = GraphStore(job.train, dtype=dtype, device=fabric.device)
        if self.train.y is None:
            raise ValueError("train: the graphs have no targets y")
        self.validation = None
        if job.validation is not None:
            self.validation = GraphStore(job.validation, dtype=dtype, device=fabric.device)
        self.plain_optimizer = new_optimizer(self.module, job.config)
        self.rates = LearningRates(self.plain_optimizer, job.config)
        self.model, self.optimizer = fabric.setup(self.module, self.plain_optimizer)
        self.progress = Progress()
        if job.resume and job.folder is not None and (job.folder / FILE_NAME).exists():
            self.progress = load_checkpoint(job.folder, self.module, self.plain_optimizer, job.config)
        self.checkpoint_folder = job.folder if fabric.is_global_zero else None
        self.last_checkpoint = time.monotonic()
        self.plan = self._plan(self.progress.epoch + 1)
        self.recorded = RecordedPasses()
        if not self.is_finished():
            self.plain_optimizer.zero_grad()
            self.model.train()
            self.rates.set(self.plan.epoch, 0, len(self.plan.batches))
            self.recorded = self._record()

    def is_finished(self) -> bool:
        """Whether all epochs are done, or the patience is exhausted."""
        progress, patience = self.progress, self.config.patience
        waited = progress.epoch - (progress.kept.epoch if progress.kept else 0)
        return progress.epoch >= self.config.epochs or (patience is not None and waited >= patience)

    def train_epoch(self) -> EpochRecord:
        """Train for one epoch; validate and save a checkpoint if due."""
        start, epoch = time.monotonic(), self.plan.epoch
        trained, templates = self._pass()
        is_time_to_validate = epoch == self.config.epochs or epoch % self.config.validate_every == 0
        validated = self._validate() if is_time_to_validate and self.validation is not None else None
        record = EpochRecord(
            epoch=epoch,
            loss=trained.loss,
            score=trained.score,
            validation_loss=validated.loss if validated else None,
            validation_score=validated.score if validated else None,
            **templates,
        )
        self._store_record(record, self._selection_score(record))
        self.progress.seconds += time.monotonic() - start
        self._checkpoint()
        return record

    def save_checkpoint(self) -> None:
        """Save a checkpoint now, if there is a folder; only the first process does this."""
        if self.checkpoint_folder is not None:
            save_checkpoint(self.checkpoint_folder, self.progress, self.module, self.plain_optimizer, self.config)
            self.last_checkpoint = time.monotonic()

    def final_weights(self) -> dict[str, Tensor]:
        """Return the weights of the selected epoch, or the current ones without validation."""
        if self.progress.kept:
            return self.progress.kept_weights
        self._refresh_statistics()
        return self.module.state_dict()

    def _record(self) -> RecordedPasses:
        """Record training and evaluations as CUDA graphs, if possible."""
        passes = [Pass(self.train, self._plan(1).batches)]
        if self.validation is not None:
            passes.append(Pass(self.validation, self._batches_in_order(self.validation)))
            if self.config.selection == "evaluated":
                passes.append(Pass(self.train, self._batches_in_order(self.train)))
        reason = self._unsupported_reason(passes)
        if reason is not None:
            level = logging.INFO if self.fabric.device.type == "cuda" else logging.DEBUG
            logging.getLogger("tfgw").log(level, "tfgw: steps are not recorded as CUDA graphs: %s", reason)
            return RecordedPasses()
        try:
            return self._recorded(passes)
        except torch.OutOfMemoryError:
            text = "tfgw: not enough GPU memory to record steps as CUDA graphs; they run one by one, which is slower"
            logging.getLogger("tfgw").warning(text)
            return RecordedPasses()

    def _unsupported_reason(self, passes: list[Pass]) -> str | None:
        if self.fabric.world_size > 1:
            return "several processes share each batch"
        if self.config.precision == "bf16":
            return "the precision is bf16"
        return unsupported_reason(self.module, passes)

    def _recorded(self, passes: list[Pass]) -> RecordedPasses:
        task, optimizer = self.config.task, self.plain_optimizer
        with recording() as recorder, restored(self.module, optimizer):
            # Before any padding, so that input errors are raised as usual.
            self._raise_input_errors(passes[0].store, passes[0].examples())
            step = training_step(self.module, optimizer, task, label_smoothing=self.config.label_smoothing)
            recorded = [RecordedPass(step, passes[0], recorder)]
            for evaluated in passes[1:]:
                with evaluation_mode(self.model):
                    self._raise_input_errors(evaluated.store, evaluated.examples())
                recorded.append(RecordedPass(validation_step(self.module, task), evaluated, recorder))
            return RecordedPasses(*recorded)

    def _selection_score(self, record: EpochRecord) -> float:
        """Return the training score of the rule that selects the best epoch."""
        if self.config.selection == "running" or record.validation_score is None:
            return record.score
        return self._evaluate(self.train, self.recorded.evaluation).score

    def _store_record(self, record: EpochRecord, score: float) -> None:
        may_keep = self.config.selection == "running" or reaches_best(record, self.progress.records)
        self.progress.epoch = record.epoch
        self.progress.records.append(record)
        if may_keep and is_worth_keeping(record._replace(score=score), self.progress.kept):
            self.progress.kept = Kept(record.epoch, score, cast(float, record.validation_score))
            weights = self.module.state_dict().items()
            self.progress.kept_weights = {name: tensor.detach().clone() for name, tensor in weights}

    def _checkpoint(self) -> None:
        is_due = time.monotonic() - self.last_checkpoint >= self.config.checkpoint_seconds
        if is_due or self.is_finished():
            self.save_checkpoint()

    def _plan(self, epoch: int) -> EpochPlan:
        rank, processes = self.fabric.global_rank, self.fabric.world_size
        return EpochPlan.of(epoch, self.config, self.train, rank=rank, processes=processes)

    def _pass(self) -> tuple[Evaluation, dict[str, float]]:
        """Run the planned epoch; return means over the training graphs, and the state of the templates after it."""
        plan, recorded = self.plan, self.recorded.training
        plan.seed_generators(self.fabric.device)
        total = torch.zeros(2, dtype=torch.float64)
        for number, graphs in enumerate(plan.batches):
            self.rates.set(plan.epoch, number, len(plan.batches))
            if recorded is None or not recorded.replay(graphs):
                total += self._step(graphs, plan.epoch)
        copies = {name: AsyncHostCopy(value) for name, value in template_values(self.module).items()}
        self.plan = self._plan(plan.epoch + 1)  # while the GPU is busy
        if recorded is not None:
            found = recorded.total()
            if not bool(found[0].isfinite()):
                self._raise_input_errors(self.train, plan.batches)
            total += _finite(found, plan.epoch)
        templates = {name: float(copy.values()) for name, copy in copies.items()}
        return self._mean(total, plan.num_graphs), templates

    @torch.no_grad()
    def _raise_input_errors(self, store: GraphStore, batches: list[Tensor]) -> None:
        """Raise the error of an invalid graph, because the replay of a CUDA graph cannot."""
        for graphs in batches:
            self._forward(store, graphs)

    def _step(self, graphs: Tensor, epoch: int) -> Tensor:
        measured = self._forward(self.train, self._share(graphs))
        copied = AsyncHostCopy(torch.stack(measured))
        # Fabric averages gradients over processes; with this factor they are those of the mean over the whole batch.
        loss = measured.loss * self.fabric.world_size / len(graphs)
        self.fabric.backward(loss + getattr(self.module, "auxiliary_loss", 0.0))
        # Waits for the forward pass only: the GPU is still busy with the backward pass.
        found = _finite(copied.values(), epoch)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return found

    def _refresh_statistics(self) -> None:
        if not self.config.fresh_statistics:
            return
        plan = self._plan(self.progress.epoch)
        plan.seed_generators(self.fabric.device)  # a network may draw random numbers
        refresh_statistics(self.model, (self.train.batch(self._share(graphs)) for graphs in plan.batches))

    def _validate(self) -> Evaluation:
        self._refresh_statistics()
        return self._evaluate(cast(GraphStore, self.validation), self.recorded.validation)

    def _evaluate(self, store: GraphStore, recorded: RecordedPass | None) -> Evaluation:
        """Evaluate the current weights on all graphs of a store."""
        batches = self._batches_in_order(store)
        if recorded is not None:
            for graphs in batches:
                recorded.replay(graphs)  # always fits, because the capacity was computed from these batches
            total = recorded.total()
            if not bool(total[0].isfinite()):
                with evaluation_mode(self.model):
                    self._raise_input_errors(store, batches)
            return self._mean(total, len(store))
        total = torch.zeros(2, dtype=torch.float64)
        with evaluation_mode(self.model):
            copies = [AsyncHostCopy(torch.stack(self._forward(store, graphs))) for graphs in batches]
        for copy in copies:
            total += copy.values()
        return self._mean(total, len(store))

    def _batches_in_order(self, store: GraphStore) -> list[Tensor]:
        share = self._share(torch.arange(len(store)))
        return list(share.split(self.config.batch_size))

    def _forward(self, store: GraphStore, graphs: Tensor) -> Sums:
        batch = store.batch(graphs)
        if batch.y is None:
            raise ValueError("validation: the graphs have no targets y")
        task, outputs = self.config.task, self.model(**batch.inputs)
        if not self.model.training:
            return sums(task, outputs, batch.y)
        return sums(task, outputs, batch.y, label_smoothing=self.config.label_smoothing, weights=batch.weights)

    def _share(self, graphs: Tensor) -> Tensor:
        return graphs[self.fabric.global_rank :: self.fabric.world_size]

    def _mean(self, total: Tensor, count: int) -> Evaluation:
        if self.fabric.world_size > 1:
            total = cast(Tensor, self.fabric.all_reduce(total.to(self.fabric.device), reduce_op="sum"))
        loss, score = (total / count).tolist()
        return Evaluation(loss, score)


def _finite(measured: Tensor, epoch: int) -> Tensor:
    """Return loss and score; raise ``FloatingPointError`` if the loss is not finite."""
    if not bool(measured[0].isfinite()):
        raise FloatingPointError(f"the loss of epoch {epoch} is not finite; try a smaller learning rate")
    return measured

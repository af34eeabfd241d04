"""Training progress: a progress bar and TensorBoard logs."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from tfgw.nn import TemplateLayer, TFGWPooling
from tfgw.train.history import EpochRecord


class Reporter:
    """Reports the record of each epoch; writes TensorBoard logs to ``folder``."""

    def __init__(self, *, epochs: int, done: int, bar: bool, folder: Path | None) -> None:
        self._bar = tqdm(total=epochs, initial=done, unit="epoch", disable=not bar)
        self._writer = None if folder is None else _summary_writer(folder, done)

    def show(self, record: EpochRecord) -> None:
        """Report an epoch."""
        values = {key: value for key, value in record._asdict().items() if value is not None and key != "epoch"}
        self._bar.set_postfix({_SHORT[key]: f"{value:.3g}" for key, value in values.items()}, refresh=False)
        self._bar.update()
        if self._writer is not None:
            for key, value in values.items():
                self._writer.add_scalar(key, value, record.epoch)

    def close(self) -> None:
        """Close the progress bar and the logs."""
        self._bar.close()
        if self._writer is not None:
            self._writer.close()


_SHORT = {
    "loss": "loss",
    "score": "train",
    "validation_loss": "val loss",
    "validation_score": "val",
    "alpha": "α",
    "live_nodes": "nodes",
}


def template_values(model: nn.Module) -> dict[str, Tensor]:
    """Return mean α and the mean number of template nodes with positive weight, if the model has a template layer."""
    layers = [layer for layer in model.modules() if isinstance(layer, TemplateLayer)]
    values = {
        "live_nodes": [layer.live_nodes.double().mean() for layer in layers],
        "alpha": [layer.alpha.detach().mean() for layer in layers if isinstance(layer, TFGWPooling)],
    }
    return {name: torch.stack(found).mean() for name, found in values.items() if found}


def _summary_writer(folder: Path, done: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ValueError("tensorboard: not installed; pip install 'tfgw[tensorboard]'") from error
    return SummaryWriter(str(folder), purge_step=done)

"""The optimiser of a training run, and its learning rates."""

from typing import Any

import torch
from torch import nn

from tfgw.nn import TemplateLayer, project_after_step
from tfgw.train.config import TrainConfig
from tfgw.train.schedules import lr_factor


def new_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """Create AdamW, which also projects templates after each step. Templates have no weight decay."""
    layers = [layer for layer in model.modules() if isinstance(layer, TemplateLayer)]
    templates = [parameter for layer in layers for parameter in layer.parameters()]
    in_templates = {id(parameter) for parameter in templates}
    networks = [parameter for parameter in model.parameters() if id(parameter) not in in_templates]
    groups: list[dict[str, Any]] = [{"params": networks, "lr": config.lr}]
    if templates:
        groups.append({"params": templates, "lr": config.template_lr or config.lr, "weight_decay": 0.0})
    optimizer = torch.optim.AdamW(groups, betas=config.betas, weight_decay=config.weight_decay, fused=True)
    if layers:
        project_after_step(optimizer, model)
    return optimizer


class LearningRates:
    """The learning rates of an optimiser over the steps of a run.

    On a GPU, a rate that changes is a tensor, so that replayed steps read its current value.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, config: TrainConfig) -> None:
        self._optimizer = optimizer
        self._config = config
        self._largest = [group["lr"] for group in optimizer.param_groups]

    def set(self, epoch: int, step: int, steps: int) -> None:
        """Set the rates for a step (from 0) of an epoch (from 1) with ``steps`` steps."""
        if self._config.schedule == "constant":
            return
        done, total = (epoch - 1) * steps + step, self._config.epochs * steps
        factor = lr_factor(self._config.schedule, done, total, epoch=epoch)
        for group, largest in zip(self._optimizer.param_groups, self._largest, strict=True):
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(largest * factor)
            elif any(parameter.is_cuda for parameter in group["params"]):
                device = group["params"][0].device
                # The fused optimiser requires float32, even if the default dtype differs.
                group["lr"] = torch.tensor(largest * factor, dtype=torch.float32, device=device)
            else:
                group["lr"] = largest * factor

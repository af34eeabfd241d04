"""Steps of Adam and AdamW in CUDA kernels that update all parameters together (ot/cuda/adam.cuh)."""

import ctypes
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim.optimizer import _global_optimizer_pre_hooks

from tfgw.nn.cuda import launching

THREADS, ENTRIES = 256, 512
"""Threads of a block, and entries of a tensor that it updates."""
MAX_GROUPS = 4
"""Maximum number of parameter groups."""
STEPS, TENSORS = 192, 80
"""Maximum numbers of tensors of a launch of each kernel."""
FACTORS = 7
"""Numbers that the first kernel computes for each tensor."""


class _Group(ctypes.Structure):
    _fields_ = [
        ("rate", ctypes.c_void_p),
        *((name, ctypes.c_double) for name in ("constant_rate", "beta1", "beta2", "eps", "weight_decay")),
        ("decoupled", ctypes.c_int64),
    ]


class _Step(ctypes.Structure):
    _fields_ = [("step", ctypes.c_void_p), ("group", ctypes.c_int64)]


class AdamSteps(ctypes.Structure):
    """The argument of the kernel that counts steps."""

    _fields_ = [
        ("count", ctypes.c_int64),
        ("loss", ctypes.c_void_p),
        ("factors", ctypes.c_void_p),
        ("groups", _Group * MAX_GROUPS),
        ("tensors", _Step * STEPS),
    ]


class _Tensor(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("value", "grad", "mean", "square")),
        *((name, ctypes.c_int64) for name in ("size", "first_block")),
    ]


class AdamUpdate(ctypes.Structure):
    """The argument of the kernel that updates entries."""

    _fields_ = [
        ("count", ctypes.c_int64),
        ("loss", ctypes.c_void_p),
        ("factors", ctypes.c_void_p),
        ("tensors", _Tensor * TENSORS),
    ]


class _Stepped(NamedTuple):
    """A parameter with a gradient, its state, and the number of its group."""

    value: Tensor
    grad: Tensor
    mean: Tensor
    square: Tensor
    step: Tensor
    group: int

    @classmethod
    def of(cls, parameter: Tensor, state: dict[str, Tensor], group: int) -> "_Stepped":
        assert parameter.grad is not None
        grad = parameter.grad if parameter.grad.is_sparse else parameter.grad.contiguous()
        return cls(parameter, grad, state["exp_avg"], state["exp_avg_sq"], state["step"], group)

    def is_supported(self, like: Tensor) -> bool:
        *tensors, step = self[:5]
        same = all(t.dtype == like.dtype and t.device == like.device and _is_plain(t) for t in tensors)
        return same and step.dtype == torch.float32 and step.device == like.device


def step_if_finite(optimizer: torch.optim.Adam, loss: Tensor) -> None:
    """Call ``step()`` and ``zero_grad()`` of a fused optimiser; if ``loss`` is not finite, the weights do not change.

    The host does not wait for the loss.
    """
    stepped = _supported(optimizer, loss)
    if stepped:
        _launch(optimizer, stepped, loss)
        optimizer.zero_grad()
        optimizer.step()  # there are no gradients any more, so this only calls the hooks after a step
        return
    # As PyTorch's gradient scaler does.
    optimizer.found_inf = (~loss.isfinite()).float()  # type: ignore[attr-defined]
    optimizer.step()
    del optimizer.found_inf  # type: ignore[attr-defined]
    optimizer.zero_grad()


def _supported(optimizer: torch.optim.Adam, loss: Tensor) -> list[_Stepped]:
    """Return the parameters to step, or none if there is no kernel. The optimiser creates its state in its first step,
    which therefore has none."""
    groups, state = optimizer.param_groups, optimizer.state
    if type(optimizer) not in (torch.optim.Adam, torch.optim.AdamW) or len(groups) > MAX_GROUPS:
        return []
    if optimizer._optimizer_step_pre_hooks or _global_optimizer_pre_hooks:  # they may change the gradients
        return []
    if not launching.is_supported(loss) or not all(_is_supported_group(group, loss.device) for group in groups):
        return []
    numbered = [(p, number) for number, group in enumerate(groups) for p in group["params"] if p.grad is not None]
    if not all(state.get(p) for p, _ in numbered):
        return []
    stepped = [_Stepped.of(p, state[p], number) for p, number in numbered]
    return stepped if all(one.is_supported(loss) for one in stepped) else []


def _is_supported_group(group: dict[str, Any], device: torch.device) -> bool:
    rate, options = group["lr"], [group[name] for name in ("amsgrad", "maximize", "differentiable")]
    if any(options) or any(isinstance(beta, Tensor) for beta in group["betas"]):
        return False
    return not isinstance(rate, Tensor) or (rate.numel() == 1 and rate.dtype == torch.float32 and rate.device == device)


def _is_plain(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.is_contiguous()


def _launch(optimizer: torch.optim.Adam, stepped: list[_Stepped], loss: Tensor) -> None:
    kind = launching.NAMES[loss.dtype]
    groups = (_Group * MAX_GROUPS)(*map(_group, optimizer.param_groups))
    factors = loss.new_empty(len(stepped), FACTORS, dtype=torch.float64)
    for first, part in _parts(stepped, STEPS):
        tensors = (_Step * STEPS)(*(_Step(one.step.data_ptr(), one.group) for one in part))
        steps = AdamSteps(len(part), loss.data_ptr(), factors[first].data_ptr(), groups, tensors)
        launching.launch(f"tfgw_adam_steps_{kind}", 1, THREADS, steps, loss.device)
    for first, part in _parts(stepped, TENSORS):
        *begins, blocks = accumulate((-(-one.value.numel() // ENTRIES) for one in part), initial=0)
        entries = (
            _Tensor(*(tensor.data_ptr() for tensor in one[:4]), one.value.numel(), begin)
            for one, begin in zip(part, begins, strict=True)
        )
        update = AdamUpdate(len(part), loss.data_ptr(), factors[first].data_ptr(), (_Tensor * TENSORS)(*entries))
        # As operations in place do.
        torch.autograd.graph.increment_version([one.value for one in part])
        if blocks:
            launching.launch(f"tfgw_adam_update_{kind}", blocks, THREADS, update, loss.device)


def _parts(stepped: list[_Stepped], size: int) -> Iterator[tuple[int, list[_Stepped]]]:
    """Split a list into parts of a maximum size, each with the index of its first member."""
    return ((first, stepped[first : first + size]) for first in range(0, len(stepped), size))


def _group(group: dict[str, Any]) -> _Group:
    rate = group["lr"]
    given = (rate.data_ptr(), 0.0) if isinstance(rate, Tensor) else (None, rate)
    return _Group(*given, *group["betas"], group["eps"], group["weight_decay"], group["decoupled_weight_decay"])

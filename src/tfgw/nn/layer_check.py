"""Check the GPU kernels for the layers of networks: the part of ``tfgw gpu`` that is not about the solver.

>>> check_layer_kernels().agrees     # compiles missing kernels
"""

import time
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tfgw.nn.batch_norm import BatchNorm, NormSequential
from tfgw.nn.constraints import UNIT_INTERVAL, Constraint
from tfgw.nn.cuda.adam_kernel import step_if_finite
from tfgw.nn.cuda.gather_kernel import Spans, gather, is_supported
from tfgw.nn.encoders import GINLayer
from tfgw.nn.linear import Linear
from tfgw.nn.padding import Rows, use_padding
from tfgw.nn.projections import project_
from tfgw.ot.backends.cuda.kernels import layers_origin, load_layers

TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-4}
"""Maximum difference of a result, relative to its largest entry, by precision."""
NODES, PADDING, CHANNELS, OUTPUTS = 1203, 77, 33, 6
"""Size of the test batch: a thread sums up several rows, and the last block has fewer channels than the others."""


class CheckedLayers(NamedTuple):
    """Comparison of the kernels for the layers of networks with PyTorch operations on the CPU."""

    origin: str
    """Where the machine code came from: ``"package"``, ``"cache"`` or ``"compiler"``."""
    seconds: float
    """Time until all kernels were loaded."""
    difference: float
    """Largest difference of a result in double precision, relative to the largest entry of the result."""
    difference_float32: float
    """The same in single precision."""

    @property
    def agrees(self) -> bool:
        """Whether both differences are within the tolerance."""
        limits = TOLERANCES[torch.float64], TOLERANCES[torch.float32]
        return self.difference <= limits[0] and self.difference_float32 <= limits[1]


def check_layer_kernels(device: str = "cuda") -> CheckedLayers:
    """Load or compile the kernels for the layers of networks, and compare them with PyTorch operations.

    Args:
        device: PyTorch's name of the GPU.
    """
    index = torch.device(device).index or 0
    where, started = layers_origin(index), time.perf_counter()
    load_layers(index)
    seconds = time.perf_counter() - started
    return CheckedLayers(where, seconds, *(_difference(device, dtype) for dtype in TOLERANCES))


def _difference(device: str, dtype: torch.dtype) -> float:
    pairs = zip(_computed(device, dtype), _computed("cpu", dtype), strict=True)
    return max(float((found - expected).abs().max() / expected.abs().max()) for found, expected in pairs)


def _computed(device: str, dtype: torch.dtype) -> list[Tensor]:
    """Return outputs, gradients and statistics of padded training batches. The CPU has no kernels for them."""
    generator = torch.Generator().manual_seed(0)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(device, dtype)

    is_node = (torch.arange(NODES + PADDING, device=device) < NODES).unsqueeze(1).to(dtype)
    ring = torch.arange(NODES, device=device)
    links = torch.stack([ring.repeat_interleave(2), torch.stack([ring - 1, ring + 1], dim=1).flatten() % NODES])
    found = _gathered_path(numbers(5, 3), numbers(4), numbers(5))
    found += _stepped([numbers(CHANNELS, CHANNELS), numbers(3)], [numbers(CHANNELS, CHANNELS), numbers(3)])
    projected = [Constraint(numbers(5, 40)), Constraint(numbers(1100), UNIT_INTERVAL)]
    project_(projected)
    found += [one.tensor for one in projected]
    for between in ([], [nn.ReLU()]):
        layer = GINLayer(NormSequential(BatchNorm(CHANNELS), *between, Linear(CHANNELS, OUTPUTS))).to(device, dtype)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(numbers(*parameter.shape))
        x, up = numbers(NODES + PADDING, CHANNELS).requires_grad_(), numbers(NODES + PADDING, OUTPUTS)
        with use_padding(Rows.where(is_node, links)):
            out = layer(x, links)
        found += [out, *torch.autograd.grad((out * up * is_node).sum(), [x, *layer.parameters()])]
        found += [buffer for buffer in layer.buffers() if buffer.is_floating_point()]
    return [tensor.detach().cpu() for tensor in found]


def _stepped(values: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
    """Return parameters and their state after two steps; the optimiser itself makes the first one."""
    parameters = [nn.Parameter(value) for value in values]
    groups = [{"params": [parameter], "weight_decay": 0.1 * parameter.dim()} for parameter in parameters]
    optimizer = torch.optim.AdamW(groups, lr=0.1, fused=True)
    for _ in range(2):
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter.grad = grad.clone()
        step_if_finite(optimizer, values[0].sum())
    return [tensor for parameter in parameters for tensor in (parameter, *optimizer.state[parameter].values())]


def _gathered_path(x: Tensor, edge_weight: Tensor, node_weights: Tensor) -> list[Tensor]:
    """Return the padded batch of the second of two directed paths, of two and three nodes."""
    edge_index = torch.tensor([[0, 2, 3, 2], [1, 3, 4, 4]], device=x.device)
    dataset = {"x": x, "edge_index": edge_index, "edge_weight": edge_weight, "node_weights": node_weights}
    graphs = torch.ones(1, dtype=torch.int64, device=x.device)
    if is_supported(dataset, graphs):
        nodes, edges = (
            Spans(torch.tensor(lengths, device=x.device), torch.tensor(lengths, device=x.device).cumsum(0))
            for lengths in ([2, 3], [1, 3])
        )
        found = gather(dataset, nodes, edges, graphs, node_rows=6, edge_rows=5)
        return [*found.tensors.values(), found.is_node, found.number]
    return [
        torch.cat([x[2:], torch.zeros_like(x[:3])]),
        torch.tensor([[0, 1, 0, 3, 4], [1, 2, 2, 4, 5]]),
        torch.tensor([0, 0, 0, 1, 1, 1]),
        torch.cat([edge_weight[1:], edge_weight[:1].expand(2)]),
        torch.cat([node_weights[2:], node_weights[:1].expand(3)]),
        torch.tensor([1, 1, 1, 0, 0, 0]).unsqueeze(1).to(x),
        torch.tensor(3).to(x),
    ]

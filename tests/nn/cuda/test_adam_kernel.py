"""Steps of Adam and AdamW by kernels, here on a CPU."""

import copy
import ctypes

import pytest
import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tests.nn.cuda.emulated_layers import emulate, kernels
from tests.ot.cuda.emulation import COMPILER
from tfgw.nn.cuda import adam_kernel
from tfgw.nn.cuda.adam_kernel import step_if_finite

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

FINITE, INFINITE = torch.tensor(2.5).double(), torch.tensor(torch.inf).double()
SIZES = ((), (513,), (3, 7), (0,), (2, 5, 300))


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Emulate kernel launches; return the names of the launched kernels."""
    return emulate(monkeypatch)


def parameters(*sizes: tuple[int, ...], dtype: torch.dtype = torch.float64) -> list[nn.Parameter]:
    return [nn.Parameter(torch.randn(size, dtype=dtype)) for size in sizes]


def with_gradients(parameters: list[nn.Parameter], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in parameters:
        scale = 10.0 ** torch.randint(-6, 3, (), generator=generator)
        parameter.grad = scale * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)


def all_parameters(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def numbers_of(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Parameters and their state."""
    found = all_parameters(optimizer)
    return [t.detach().clone() for p in found for t in (p, *optimizer.state[p].values())]


def test_python_and_the_kernels_agree_on_sizes() -> None:
    assert kernels().adam_threads() == adam_kernel.THREADS
    assert kernels().adam_entries() == adam_kernel.ENTRIES
    assert kernels().adam_factors() == adam_kernel.FACTORS
    assert kernels().adam_steps_bytes() == ctypes.sizeof(adam_kernel.AdamSteps) <= 4096
    assert kernels().adam_update_bytes() == ctypes.sizeof(adam_kernel.AdamUpdate) <= 4096


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 1e-5)])
def test_steps_are_those_of_pytorch(
    launched: list[str], kind: type[torch.optim.Adam], dtype: torch.dtype, tolerance: float
) -> None:
    """Groups with all settings different, and a rate that changes; two parameters have no gradient in the last step."""
    torch.manual_seed(0)
    rate = torch.tensor(0.02)
    ours = kind(
        [
            {"params": parameters(*SIZES, dtype=dtype), "lr": rate, "weight_decay": 0.3, "betas": (0.8, 0.95)},
            {"params": parameters(*SIZES[::-1], dtype=dtype), "lr": 0.003, "weight_decay": 0.0, "eps": 1e-4},
        ],
        fused=True,
    )
    theirs = copy.deepcopy(ours)
    for step in range(5):
        for optimizer in (ours, theirs):
            with_gradients(all_parameters(optimizer), step)
            if isinstance(optimizer.param_groups[0]["lr"], Tensor):
                optimizer.param_groups[0]["lr"].fill_(0.02 * (step + 1))
            if step == 4:
                for parameter in all_parameters(optimizer)[3:5]:
                    parameter.grad = None
        theirs.step()
        step_if_finite(ours, FINITE.to(dtype))
        assert all(parameter.grad is None for parameter in all_parameters(ours))
    torch.testing.assert_close(numbers_of(ours), numbers_of(theirs), rtol=tolerance, atol=tolerance * 1e-2)
    precision = str(dtype).removeprefix("torch.")
    # PyTorch makes the first step, which creates the state.
    assert launched == [f"tfgw_adam_steps_{precision}", f"tfgw_adam_update_{precision}"] * 4


def test_more_parameters_than_fit_in_a_launch(launched: list[str]) -> None:
    torch.manual_seed(1)
    ours = torch.optim.AdamW(parameters(*[(3, 200)] * 199), lr=0.1, fused=True)
    theirs = copy.deepcopy(ours)
    for step in range(2):
        for optimizer in (ours, theirs):
            with_gradients(all_parameters(optimizer), step)
        theirs.step()
        step_if_finite(ours, FINITE)
    torch.testing.assert_close(numbers_of(ours), numbers_of(theirs), rtol=1e-13, atol=1e-16)
    assert launched == ["tfgw_adam_steps_float64"] * 2 + ["tfgw_adam_update_float64"] * 3


@pytest.mark.parametrize("loss", [INFINITE, -INFINITE, INFINITE - INFINITE])
def test_a_loss_that_is_not_finite_changes_nothing(launched: list[str], loss: Tensor) -> None:
    torch.manual_seed(2)
    optimizer = torch.optim.AdamW(parameters(*SIZES), fused=True)
    with_gradients(all_parameters(optimizer), 0)
    step_if_finite(optimizer, FINITE)
    before = numbers_of(optimizer)
    with_gradients(all_parameters(optimizer), 1)
    step_if_finite(optimizer, loss)
    assert len(launched) == 2
    assert all(map(torch.equal, before, numbers_of(optimizer)))


def test_hooks_are_called_once_after_each_step(launched: list[str]) -> None:
    """With the new weights, which a hook may project."""
    optimizer = torch.optim.AdamW(parameters((3,)), lr=1.0, fused=True)
    (parameter,) = all_parameters(optimizer)
    seen: list[Tensor] = []
    optimizer.register_step_post_hook(lambda *_: seen.append(parameter.detach().clone()))
    before = parameter.detach().clone()
    for step in range(3):
        with_gradients([parameter], step)
        step_if_finite(optimizer, FINITE)
        assert len(seen) == step + 1
        assert not torch.equal(seen[-1], before)
        before = seen[-1]
    assert len(launched) == 4


@pytest.mark.parametrize("everywhere", [False, True])
def test_hooks_before_a_step_may_change_the_gradients(launched: list[str], everywhere: bool) -> None:
    """Such as a hook that clips them; then PyTorch makes the step."""
    torch.manual_seed(4)
    ours = torch.optim.AdamW(parameters((3, 5)), fused=True)
    theirs = copy.deepcopy(ours)

    def halve(optimizer: torch.optim.Optimizer, *_: object) -> None:
        for parameter in all_parameters(optimizer):
            if parameter.grad is not None:
                parameter.grad *= 0.5

    register = register_optimizer_step_pre_hook if everywhere else torch.optim.AdamW.register_step_pre_hook
    handles = [register(halve)] if everywhere else [register(one, halve) for one in (ours, theirs)]
    try:
        for step in range(2):
            for optimizer in (ours, theirs):
                with_gradients(all_parameters(optimizer), step)
            theirs.step()
            step_if_finite(ours, FINITE)
    finally:
        for handle in handles:
            handle.remove()
    assert all(map(torch.equal, numbers_of(ours), numbers_of(theirs)))
    assert not launched


def test_a_graph_notices_that_its_tensors_are_updated(launched: list[str]) -> None:
    """As after every operation in place."""
    optimizer = torch.optim.AdamW(parameters((2, 3)), fused=True)
    (parameter,) = all_parameters(optimizer)
    with_gradients([parameter], 0)
    step_if_finite(optimizer, FINITE)
    loss = parameter.square().sum()
    with_gradients([parameter], 1)
    step_if_finite(optimizer, FINITE)
    assert len(launched) == 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("change", ["amsgrad", "maximize", "a rate in double precision", "many groups", "a subclass"])
def test_other_optimisers_have_no_kernel(launched: list[str], change: str) -> None:
    class Subclass(torch.optim.AdamW):
        """May compute something else."""

    torch.manual_seed(3)
    kind = Subclass if change == "a subclass" else torch.optim.AdamW
    groups = [{"params": parameters((2, 3))} for _ in range(5 if change == "many groups" else 4)]
    options = {name: change == name for name in ("amsgrad", "maximize")}
    ours = kind(groups, fused=True, **options)
    if change == "a rate in double precision":
        ours.param_groups[0]["lr"] = torch.tensor(1e-3).double()
    theirs = copy.deepcopy(ours)
    for step in range(2):
        for optimizer in (ours, theirs):
            with_gradients(all_parameters(optimizer), step)
        theirs.step()
        step_if_finite(ours, FINITE)
    assert all(map(torch.equal, numbers_of(ours), numbers_of(theirs)))
    assert not launched

"""The host's part of a solve, in front of a driver that only listens: nothing here needs a GPU or a compiler."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, c_double, c_int64, c_void_p, cast
from threading import Barrier, Event
from typing import Any

import pytest
import torch

from tests.ot.cuda.emulation import EmulatedDriver, EmulatedGpu, Launch
from tfgw.ot import _core
from tfgw.ot.backends import cuda
from tfgw.ot.backends.cuda.results import HostSolution
from tfgw.ot.problem import PLANS, Problem, ProblemSize, StructurePattern

COUNTS = {"graphs": 3, "nodes": 20, "features": 5, "edges": 41, "templates": 7, "columns": 11}
INTEGERS = {"ptr": 4, "graph_of": 20, "order": 3, "row_start": 21, "column": 41, "packed_row": 20, "packed_begin": 24,
            "live_count": 7, "live": 7 * 16, "queue": 7}  # fmt: skip
DOUBLES = {"packed": 2 * (41 + 8 * 20), "dense_at": 4, "value": 41, "h": 20, "supply": 20, "constant": 3, "t_h": 7 * 16,
           "C": 7 * 16 * 16, "ft": 7 * 5 * 16, "t_square": 7 * 11, "t_constant": 7}  # fmt: skip
SIZE = ProblemSize(num_graphs=5, num_nodes=100, num_templates=3, template_nodes=20, start_kinds=7)


class Listener(EmulatedDriver):
    """Does nothing, but keeps the first words of each launch's first and last struct: counts, where the input is."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[list[int]] = []
        self.last_words: list[list[int]] = []

    def function(self, name: str, columns: int) -> Callable[..., Any]:
        def listen(blocks: int, shared: int, *structs: c_void_p) -> None:
            for kept, struct in ((self.words, structs[0]), (self.last_words, structs[-1])):
                kept.append(list(cast(struct, POINTER(c_int64))[:8]))

        return listen


def problem(**changes: Any) -> Problem:
    graphs, nodes, features, edges, templates, columns = COUNTS.values()
    given = Problem(
        x=torch.randn(nodes, features).double(),
        batch=torch.zeros(nodes).long(),
        batch_size=graphs,
        node_weights=None,
        edge_index=torch.zeros(2, edges).long(),
        edge_weight=None,
        structure=None,
        template_structure=torch.zeros(templates, columns, columns).double(),
        template_features=torch.zeros(templates, columns, features).double(),
        template_weights=torch.full((templates, columns), 1 / columns).double(),
        alpha=torch.full((templates,), 0.5).double(),
        max_iter=10,
    )
    return given._replace(**changes)


def solve(gpu: EmulatedGpu, given: Problem | None = None) -> HostSolution | None:
    found = gpu.host.solve(given or problem(), 1e-6, PLANS)
    return None if found is None else HostSolution(*found)


def gradients(gpu: EmulatedGpu, given: Problem, solution: HostSolution, *needs: int) -> list[torch.Tensor | None]:
    """Of what is at these places."""
    assert given.batch_size is not None
    up = torch.ones(given.batch_size, given.template_weights.shape[0]).double()
    wanted = [i in needs for i in range(8)]
    return gpu.host.backward(given, up, wanted, prepared=solution.prepared, pairs=solution.pairs, plans=solution.plans)


def test_prepared_members_have_room_and_do_not_overlap() -> None:
    places = _core.gpu_prepared(**COUNTS)
    end = 0
    for name, (at, size) in places.items():
        assert at >= end, name
        assert at % 16 == 0
        end = at + size
    assert all(places[name][1] >= 4 * entries for name, entries in INTEGERS.items())
    assert all(places[name][1] >= 8 * entries for name, entries in DOUBLES.items())
    solution = solve(EmulatedGpu(driver=Listener()))
    assert solution is not None
    assert len(solution.prepared) >= end


def test_size_classes() -> None:
    assert [_core.gpu_size_class(n) for n in (1, 16, 17, 64, 128, 129, 257, 512)] == [
        16, 16, 32, 64, 128, 256, 512, 512,
    ]  # fmt: skip
    assert _core.gpu_size_class(513) is None


def test_unsupported_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    beginning = 2 * 100 * 3 * 32 + 2 * (100 * 3 + 5 * 3 * 32) + 2 * 5 * 3  # doubles for 5 graphs and 3 templates
    gpu = EmulatedGpu(driver=Listener(), memory=2 * 8 * (_core.gpu_workspace_size(100, 32) + beginning))
    monkeypatch.setattr(cuda, "gpu_of", lambda device: gpu)
    assert cuda.unsupported_reason(problem()) is None
    assert cuda.unsupported_reason(problem(n_starts=2)) is None
    assert cuda.unsupported_reason(problem(start_kinds=2)) is None
    why, size = gpu.host.unsupported_reason, SIZE
    assert why(size) is None
    no_room = "its memory has no room for 100 nodes and {} templates at a time"
    assert why(size._replace(num_templates=4)) == no_room.format(4)
    assert why(size._replace(has_initial_plans=True)) == no_room.format(3)
    assert why(size._replace(num_nodes=120)) == "a batch of 120 nodes may hold a graph too large for its memory"
    one = ProblemSize(num_graphs=1, num_nodes=1, num_templates=1, template_nodes=129, start_kinds=7)
    assert why(one._replace(template_nodes=513)) == "templates have 513 nodes, more than 512"
    assert why(one) is None
    assert why(one._replace(n_starts=2)) == "templates have 129 nodes, and several starts are limited to 128"
    large = EmulatedGpu(driver=Listener()).host.unsupported_reason
    many = size._replace(n_starts=2**31 - 1, start_kinds=1)
    assert large(many) == "15 pairs have too many starts for its queue"
    old = EmulatedGpu(driver=Listener(), generation=7).host
    assert old.unsupported_reason(one) == "the GPU is older than compute capability 8.0"


@pytest.mark.parametrize(
    ("starts", "kinds", "given", "doubles"),
    [
        (1, 7, False, 0),
        (1, 1, True, 0),
        # For 5 graphs, 100 nodes and 3 templates of up to 32 nodes: records of pairs, queues, costs, arcs, kinds; of
        # anchored starts kinds, scales, pinned nodes, numbers of walks, and walks on graphs and templates.
        (2, 1, False, 46 + 10 + 2 * (300 * 32 + 2 * (300 + 15 * 32)) + 16),
        (1, 2, False, 46 + 10 + 300 * 32 + 2 * (300 + 15 * 32) + 8 + 8 + 16 + 16 + 50 + 100 * 6 * 8 + 6 * 8 * 32),
        (
            4,
            7,
            False,
            46 + 10 + 4 * (300 * 32 + 2 * (300 + 15 * 32)) + 30 + 8 + 16 + 60 + 50 + 100 * 24 * 8 + 24 * 8 * 32,
        ),
    ],
)
def test_memory_of_several_starts(starts: int, kinds: int, given: bool, doubles: int) -> None:
    """No byte more is asked for than there is room for, and no byte less is enough."""
    beginning = (4 if given else 2) * 300 * 32 + 2 * (300 + 15 * 32) + 2 * 15
    needed = _core.gpu_workspace_size(100, 32, several=doubles > 0) + beginning + doubles
    enough, too_little = (EmulatedGpu(driver=Listener(), memory=16 * (needed + more)).host for more in (0, -1))
    size = SIZE._replace(has_initial_plans=given, n_starts=starts, start_kinds=kinds)
    assert enough.unsupported_reason(size) is None
    reason = too_little.unsupported_reason(size)
    assert reason is not None
    assert reason.endswith(f", with {starts} starts" if doubles else "at a time")


def test_launches_of_a_solve() -> None:
    driver = Listener()
    given = problem()
    assert solve(EmulatedGpu(processors=5, driver=driver), given) is not None
    _, solve_shared, _, start_shared, *_ = _core.gpu_solve_shape(
        shared=228 << 10, graphs=3, nodes=20, edges=41, columns=11
    )
    assert driver.launches == [
        Launch("tfgw_index", 1, 1024, 0),
        Launch("tfgw_prepare", 3 + 7, 256, 0),
        Launch("tfgw_start", 4 * 5, 128, start_shared),
        Launch("tfgw_solve", 2 * 5, 128, solve_shared),
    ]
    assert given.batch is not None
    for words in driver.words:
        assert words == [*COUNTS.values(), given.batch.data_ptr(), given.x.data_ptr()]
    assert driver.calls[-4:] == ["cuEventRecord", "cuLaunchKernel", "cuLaunchKernel", "cuEventSynchronize"]


@pytest.mark.parametrize(("concurrent", "processors"), [(2, 2), (3, 1), (7, 1)])
def test_concurrent_solves_share_the_multiprocessors(concurrent: int, processors: int) -> None:
    driver = Listener()
    assert solve(EmulatedGpu(processors=5, driver=driver), problem()._replace(concurrent_solves=concurrent)) is not None
    assert [launch.blocks for launch in driver.launches] == [1, 3 + 7, 4 * processors, 2 * processors]


def told(given: Problem) -> list[int]:
    """Counts, and where `batch` and `x` are."""
    driver = Listener()
    assert solve(EmulatedGpu(driver=driver), given) is not None
    return driver.words[-1]


def test_tensors_are_read_where_they_are(ask: str) -> None:
    given = problem(x=torch.randn(40, 5).double()[20:])
    assert given.batch is not None
    assert told(given) == [*COUNTS.values(), given.batch.data_ptr(), given.x.data_ptr()]
    one = problem(x=torch.randn(20, 3).double()[:, 1:2], template_features=torch.zeros(7, 11, 1).double())
    wide = problem(x=torch.randn(1, 5).double().as_strided((1, 5), (9, 1)), batch=torch.zeros(1).long())
    nothing = problem(edge_index=torch.zeros(0, 2).long().T)
    assert told(one)[7] != one.x.data_ptr()
    assert told(wide)[7] == wide.x.data_ptr()  # of one row, nobody cares where the next one is
    assert told(nothing)[3] == 0


@pytest.mark.parametrize("x", [torch.randn(5, 20).double().T, torch.randn(20, 5), torch.randn(20, 5).half()])
def test_other_tensors_are_copied_as_kernels_read_them(ask: str, x: torch.Tensor) -> None:
    kept: list[torch.Tensor] = []

    class Reader(Listener):
        def function(self, name: str, columns: int) -> Callable[..., Any]:
            def read(blocks: int, shared: int, *structs: c_void_p) -> None:
                address = cast(structs[0], POINTER(c_int64))[7]
                kept.append(torch.tensor(cast(address, POINTER(c_double))[:100]).double().view(20, 5))

            return read

    assert solve(EmulatedGpu(driver=Reader()), problem(x=x.requires_grad_())) is not None
    assert torch.equal(kept[0], x.detach().double())


@pytest.mark.parametrize(
    ("name", "tensor"),
    [("x", torch.empty(20, 5, device="meta", dtype=torch.float64)), ("batch", torch.zeros(20).long().to_sparse()),
     ("edge_weight", torch._efficientzerotensor((41,), dtype=torch.float64))],
)  # fmt: skip
def test_a_tensor_without_memory_is_not_taken_for_one_that_is_not_given(
    ask: str, name: str, tensor: torch.Tensor
) -> None:
    driver = Listener()
    with pytest.raises(ValueError, match=f"^{name}: has no memory of its own"):
        solve(EmulatedGpu(driver=driver), problem(**{name: tensor}))
    assert not driver.launches


def test_launches_of_a_backward() -> None:
    given = problem(edge_weight=torch.ones(41).double())
    driver = Listener()
    gpu = EmulatedGpu(driver=driver)
    solution = solve(gpu, given)
    assert solution is not None
    expected = {
        (0,): ["nodes"],
        (2,): ["edges"],
        (3,): [],  # there is no dense structure
        (4,): ["nodes", "templates"],
        (5, 7): ["templates"],
    }
    for needs, names in expected.items():
        driver.launches.clear()
        grads = gradients(gpu, given, solution, *needs)
        assert [i for i, g in enumerate(grads) if g is not None] == [i for i in needs if i != 3]
        assert [launch.kernel for launch in driver.launches] == [f"tfgw_backward_{name}" for name in names]
    sizes = {launch.kernel: launch[1:3] for launch in driver.launches}
    assert sizes == {"tfgw_backward_templates": (7 * 11, 512)}


def test_entries_that_are_shared_are_expanded_and_folded() -> None:
    entries = torch.rand(7, 3).double()
    pattern = StructurePattern(torch.zeros(7, 121).long(), None, torch.tensor([[1, 11], [2, 22], [3, 33]]))
    given = problem(template_structure=entries, pattern=pattern, alpha=torch.tensor(0.5).double())
    driver = Listener()
    gpu = EmulatedGpu(driver=driver)
    solution = solve(gpu, given)
    assert solution is not None
    assert driver.launches[0] == Launch("tfgw_index", 1 + 7, 1024, 0)
    words = driver.last_words[0]
    assert words[:4] == [7, 121, 3, 0]
    assert words[4:7] == [pattern.places.data_ptr(), entries.data_ptr(), given.alpha.data_ptr()]
    grads = gradients(gpu, given, solution, 4, 7)
    assert driver.launches[-1] == Launch("tfgw_fold", 7, 256, 0)
    assert grads[4] is not None
    assert grads[7] is not None
    assert driver.words[-1][5:7] == [grads[4].data_ptr(), grads[7].data_ptr()]
    assert (grads[4].shape, grads[7].shape) == (entries.shape, ())


def test_a_launch_that_fails_says_why() -> None:
    driver = Listener()
    driver.errors["cuLaunchKernel"] = [0, 0, 0, 1]
    with pytest.raises(RuntimeError, match="tfgw: tfgw_solve failed: CUDA_ERROR_INVALID_VALUE"):
        solve(EmulatedGpu(driver=driver))


def test_a_kernel_that_cannot_be_loaded_says_why() -> None:
    class Broken(Listener):
        def function(self, name: str, columns: int) -> Callable[..., Any]:
            raise ImportError(f"no {name} of {columns}")

    with pytest.raises(ImportError, match="no tfgw_index of 16"):
        solve(EmulatedGpu(driver=Broken()))


def test_a_thread_without_a_context_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: asked.append(True))
    driver = Listener()
    driver.errors["cuLaunchKernel"] = [201, 0]
    assert solve(EmulatedGpu(driver=driver)) is not None
    assert asked == [True]


def test_nobody_waits_while_a_graph_is_captured() -> None:
    driver = Listener()
    driver.capturing = True
    assert solve(EmulatedGpu(driver=driver)) is not None
    assert driver.calls == ["cuStreamIsCapturing", *["cuLaunchKernel"] * 4]


class OutOfMemory:
    """Instead of ``torch.empty``: fails when it is called for the second time, that is, after the first launches."""

    def __init__(self) -> None:
        self.empty, self.calls = torch.empty, 0

    def __call__(self, *arguments: Any, **options: Any) -> torch.Tensor:
        self.calls += 1
        if self.calls == 2:
            raise torch.OutOfMemoryError("none left")
        return self.empty(*arguments, **options)


def test_the_word_of_a_solve_that_was_given_up_is_not_another_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernels may set the word until the event behind them has come."""
    monkeypatch.setattr(torch, "empty", OutOfMemory())
    driver = Listener()
    gpu = EmulatedGpu(driver=driver)
    with pytest.raises(torch.OutOfMemoryError, match="none left"):
        solve(gpu)
    assert "cuEventSynchronize" not in driver.calls
    driver.calls.clear()
    assert solve(gpu) is not None
    assert driver.calls.index("cuEventSynchronize") < driver.calls.index("cuLaunchKernel")
    assert driver.calls.count("cuEventSynchronize") == 2
    driver.calls.clear()
    assert solve(gpu) is not None
    assert driver.calls.count("cuEventSynchronize") == 1
    assert "cuMemHostAlloc" not in driver.calls


def test_two_solves_at_once_have_a_word_each_and_do_not_hold_others_up() -> None:
    class Slow(Listener):
        """Waits in its events until both solves do."""

        both = Barrier(2, timeout=20)

        def cuEventSynchronize(self, event: int) -> None:
            self.both.wait()

    driver = Slow()
    gpu = EmulatedGpu(driver=driver)
    with ThreadPoolExecutor(max_workers=2) as pool:
        assert all(found.result() is not None for found in [pool.submit(solve, gpu) for _ in range(2)])
    assert driver.calls.count("cuMemHostAlloc") == 2


def test_tensors_that_kernels_cannot_read_are_converted() -> None:
    given = problem()
    x = torch.stack((given.x, given.x), -1)[..., 0].float().requires_grad_()
    driver = Listener()
    gpu = EmulatedGpu(driver=driver)
    solution = solve(gpu, given._replace(x=x))
    assert solution is not None
    assert driver.words[0][7] != x.data_ptr()
    (grad, *_) = gradients(gpu, given._replace(x=x), solution, 0)
    assert grad is not None
    assert (grad.dtype, grad.shape, grad.is_contiguous()) == (torch.float32, x.shape, True)


def test_a_gpu_can_be_forgotten() -> None:
    """It refers to what finds its kernels, and that may refer to it."""
    driver = Listener()
    gone = Event()
    weakref.finalize(driver, gone.set)
    driver.gpu = EmulatedGpu(driver=driver)  # type: ignore[attr-defined]
    del driver
    gc.collect()
    assert gone.is_set()


def test_what_a_driver_needs_is_found_by_name() -> None:
    with pytest.raises(KeyError, match="cuLaunchKernel"):
        _core.Gpu(driver={}, processors=1, shared=1, memory=1, generation=9, kernel=print, stream=print)
    assert all(c_void_p(address).value for address in Listener().addresses.values())


KEPT = """
import ctypes
from tests.ot.cuda.emulation import EmulatedGpu
from tfgw.ot.backends.cuda import gpu
gpu.Gpu = lambda index: EmulatedGpu()
ctypes.pythonapi.Py_IncRef(ctypes.py_object(gpu.gpu_at))  # as extensions do that never let go of what they were given
gpu.gpu_at(0)
"""


def test_nothing_is_reported_when_the_interpreter_ends() -> None:
    ended = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    assert "nanobind" not in ended.stderr

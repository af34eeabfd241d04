"""A device that stands for a GPU where pairs are solved: the meta device, with the CPU as its kernels."""

import sys
from typing import Any

import pytest
import torch

from tfgw.ot import pair_blocks
from tfgw.ot.pair_blocks import PairBlocks
from tfgw.ot.pair_solver import PairGrid, PairOptions
from tfgw.ot.problem import Problem, Solution
from tfgw.ot.ragged import RaggedSet


class StandIn:
    """Give ``device="meta"`` to use it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        """Devices of calls that have asked for blocks."""
        self.begun = 0
        """Blocks that were solved."""
        self.solved = 0
        """Pairs that were solved."""
        for name in ("pairwise", "nearest"):
            module = sys.modules[f"tfgw.ot.{name}"]
            monkeypatch.setattr(module, "checked_device", torch.device)
            monkeypatch.setattr(module, "solves_on_gpu", lambda device: device.type == "meta")
            monkeypatch.setattr(module, "PairBlocks", self._blocks)
        self._solve = pair_blocks.solve
        monkeypatch.setattr(pair_blocks, "solve", self._counted)
        monkeypatch.setattr(torch.Tensor, "to", lambda tensor, *_: tensor)

    def _blocks(self, found: RaggedSet, grid: PairGrid, options: PairOptions, device: torch.device) -> PairBlocks:
        self.asked.append(device.type)
        return PairBlocks(found, grid, options, torch.device("cpu"))

    def _counted(self, problem: Problem, **options: Any) -> Solution:
        """Pairs that are skipped get a distance that no one should read."""
        solution = self._solve(problem, **options)
        self.begun += 1
        distances = solution.distances
        if problem.skipped is not None:
            assert problem.skipped.shape == distances.shape
            distances = distances.masked_fill(problem.skipped.bool(), torch.nan)
        self.solved += int(distances.isfinite().sum())
        return solution._replace(distances=distances)

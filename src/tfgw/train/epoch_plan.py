"""The batches of an epoch, and its random seed. Both depend only on the run's seed and the epoch's number."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tfgw.train.batches import GraphStore, epoch_batches, shuffled
from tfgw.train.config import TrainConfig


class EpochPlan(NamedTuple):
    """One epoch.

    Attributes:
        epoch: Its number, from 1.
        batches: Numbers of the graphs in each batch, for all processes together.
        seed: Random seed for dropout in this process.
    """

    epoch: int
    batches: list[Tensor]
    seed: int

    @classmethod
    def of(cls, epoch: int, config: TrainConfig, store: GraphStore, *, rank: int, processes: int) -> "EpochPlan":
        """Plan an epoch over all graphs of a store."""
        rng = np.random.default_rng([config.seed, epoch])
        order = shuffled(len(store), rng=rng, classes=store.y if config.stratified else None)
        batches = epoch_batches(order, config.batch_size, smallest=2 * processes)
        state = np.random.SeedSequence((config.seed, epoch, rank)).generate_state(1, np.uint64)[0]
        return cls(epoch, batches, int(state >> np.uint64(1)))

    def seed_generators(self, device: torch.device) -> None:
        """As ``torch.manual_seed``, which with a GPU takes a millisecond to look for other kinds of devices."""
        if device.type == "cuda":
            torch.default_generator.manual_seed(self.seed)
            torch.cuda.default_generators[device.index].manual_seed(self.seed)
        else:
            torch.manual_seed(self.seed)

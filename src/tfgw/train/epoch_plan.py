"""The batches and the random seed of an epoch. Both depend only on the seed of the run and the number of the epoch."""

from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from tfgw.train.batches import GraphStore, balanced_batches, epoch_batches, shuffled
from tfgw.train.config import TrainConfig


class EpochPlan(NamedTuple):
    """Batches and seed of one epoch.

    Attributes:
        epoch: Number of the epoch, from 1.
        batches: Indices of the graphs in each batch, for all processes together.
        seed: Random seed for dropout in this process.
    """

    epoch: int
    batches: list[Tensor]
    seed: int

    @classmethod
    def of(cls, epoch: int, config: TrainConfig, store: GraphStore, *, rank: int, processes: int) -> "EpochPlan":
        """Plan an epoch over all graphs of a store, or over a random sample with balanced batches."""
        rng = np.random.default_rng([config.seed, epoch])
        if config.balanced_batches:
            batches = balanced_batches(cast(Tensor, store.y), config.batch_size, rng=rng)
        else:
            order = shuffled(len(store), rng=rng, classes=store.y if config.stratified else None)
            batches = epoch_batches(order, config.batch_size, smallest=2 * processes)
        state = np.random.SeedSequence((config.seed, epoch, rank)).generate_state(1, np.uint64)[0]
        return cls(epoch, batches, int(state >> np.uint64(1)))

    @property
    def num_graphs(self) -> int:
        """Number of graphs in all batches; repeated graphs count again."""
        return sum(map(len, self.batches))

    def seed_generators(self, device: torch.device) -> None:
        """Seed the generators. ``torch.manual_seed`` would take a millisecond to look for other kinds of devices."""
        if device.type == "cuda":
            torch.default_generator.manual_seed(self.seed)
            torch.cuda.default_generators[device.index].manual_seed(self.seed)
        else:
            torch.manual_seed(self.seed)

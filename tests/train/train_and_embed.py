"""``python -m tests.train.train_and_embed THREADS BATCH_SIZE FILE``: what a process computes, to the file."""

import sys

import torch
from torch import Tensor

from tests.train.small import cycles_and_stars
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.train import Preprocessing, TrainConfig, embeddings, fit


def train_and_embed(threads: int, batch_size: int) -> dict[str, Tensor]:
    """Weights of a model trained with so many threads, and embeddings computed in batches of this size."""
    torch.set_num_threads(threads)
    dataset = cycles_and_stars(seed=0)
    graphs = Preprocessing.fit(dataset)(dataset)
    torch.manual_seed(0)
    config = TFGWConfig(in_channels=graphs.num_features, out_channels=2, num_templates=3, template_nodes=5, n_starts=12)
    model = TFGWModel(config).double().init_templates(graphs)
    fit(model, graphs, config=TrainConfig(epochs=2, batch_size=16, accelerator="cpu"))
    return model.state_dict() | {"embeddings": embeddings(model, graphs, batch_size=batch_size)}


if __name__ == "__main__":
    torch.save(train_and_embed(int(sys.argv[1]), int(sys.argv[2])), sys.argv[3])

"""Training on a dataset of the paper, where a folder with its zip is named."""

import os

import pytest
import torch

from tfgw.datasets import load, random_split
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.train import TrainConfig, evaluate, fit

FOLDER = os.environ.get("TFGW_DATA")

pytestmark = pytest.mark.skipif(not FOLDER, reason="TFGW_DATA names no folder with the real datasets")


def test_mutag_is_learned_better_than_by_its_majority() -> None:
    dataset = load("MUTAG", data_dir=FOLDER)
    split = random_split(dataset, seed=0)
    train = dataset[split.train]
    torch.manual_seed(0)
    config = TFGWConfig(in_channels=7, out_channels=2, num_templates=8, template_nodes=17)
    model = TFGWModel(config).init_templates(train)
    fit(model, train, dataset[split.val], config=TrainConfig(epochs=50, accelerator="cpu"))
    majority = 125 / 188
    assert evaluate(model, train, task="classification").score > majority + 0.1

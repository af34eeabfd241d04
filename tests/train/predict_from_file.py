"""``python -m tests.train.predict_from_file MODEL FILE``: write the outputs of a saved model to the file."""

import sys
from pathlib import Path

import torch

from tests.train.small import cycles_and_stars
from tfgw.train import load_model

if __name__ == "__main__":
    torch.save(load_model(Path(sys.argv[1])).outputs(cycles_and_stars(seed=1)), sys.argv[2])

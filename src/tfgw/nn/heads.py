"""The MLP head, from the vector of a graph to the outputs."""

from itertools import pairwise
from typing import TypedDict

from torch import nn

from tfgw.nn.batch_norm import GraphVectorNorm, NormSequential
from tfgw.nn.linear import Linear, Perceptron

WIDTH = 128


class HeadOptions(TypedDict, total=False):
    """Settings of :func:`prediction_head`."""

    dropout: float
    single_dropout: bool
    hidden_layers: int
    normalize: bool


def prediction_head(
    in_channels: int,
    out_channels: int,
    *,
    dropout: float = 0.0,
    single_dropout: bool = False,
    hidden_layers: int = 2,
    normalize: bool = False,
) -> nn.Sequential:
    """The paper's ψ: an MLP with hidden layers of 128 units.

    Args:
        in_channels: Size of the vector of a graph.
        out_channels: Number of classes, or of values to predict.
        dropout: Dropout rate of the hidden units.
        single_dropout: Whether dropout follows only the first hidden layer, instead of every hidden layer.
        hidden_layers: Number of hidden layers; with 0, the head is a linear map.
        normalize: Whether to normalise each entry of the vector to mean 0 and variance 1 over a batch.
    """
    if out_channels < 1:
        raise ValueError(f"out_channels: must be at least 1, got {out_channels}")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout: must be at least 0 and less than 1, got {dropout}")
    if hidden_layers < 0:
        raise ValueError(f"hidden_layers: must not be negative, got {hidden_layers}")
    sizes = [in_channels, *[WIDTH] * hidden_layers]
    layers: list[nn.Module] = []
    for number, (size, next_size) in enumerate(pairwise(sizes)):
        layers += [Linear(size, next_size), nn.ReLU()]
        if number == 0 or not single_dropout:
            layers.append(nn.Dropout(dropout))
    perceptron = Perceptron(*layers, Linear(sizes[-1], out_channels))
    return NormSequential(GraphVectorNorm(in_channels), perceptron) if normalize else perceptron

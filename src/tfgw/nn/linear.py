"""A linear layer whose result for a row does not depend on the other rows."""

from torch import Tensor, constant_pad_nd, nn
from torch.nn.functional import linear

from tfgw.ot.tracing import is_eager

ROWS, COLUMNS, BYTES = 16, 8, 64


class Linear(nn.Linear):
    """``torch.nn.Linear`` which in evaluation mode maps each row independently of the others, to the last bit.

    Matrix libraries sum in a different order at the end of a matrix, or where its rows are not aligned. The last digits
    of a graph's features would then depend on its place in the batch, and the solver, which breaks ties, might end in
    another local minimum. Zeros up to a round number of rows and columns prevent that. In training mode, where batches
    are random anyway, nothing is added.
    """

    supports_padding = True

    def forward(self, x: Tensor) -> Tensor:
        if self.training or x.dim() != 2 or _is_round(x):
            return linear(x, self.weight, self.bias)
        columns = -x.shape[1] % COLUMNS
        weight = constant_pad_nd(self.weight, (0, columns)) if columns else self.weight
        return linear(constant_pad_nd(x, (0, columns, 0, -x.shape[0] % ROWS)), weight, self.bias)[: x.shape[0]]


class Perceptron(nn.Sequential):
    """Modules that map each row by itself, with zeros added for all linear layers among them at once."""

    supports_padding = True

    def forward(self, x: Tensor) -> Tensor:
        if self.training or x.dim() != 2:
            return super().forward(x)
        return super().forward(constant_pad_nd(x, (0, 0, 0, -x.shape[0] % ROWS)))[: x.shape[0]]


def _is_round(x: Tensor) -> bool:
    """Whether the matrix is as if it had been padded: of round size, and aligned as new memory is."""
    if x.shape[0] % ROWS or x.shape[1] % COLUMNS:
        return False
    return is_eager() and x.is_contiguous() and x.data_ptr() % BYTES == 0

"""A linear layer that treats every row of a batch the same way."""

from torch import Tensor, nn
from torch.nn.functional import linear, pad

ROWS, COLUMNS = 16, 8


class Linear(nn.Linear):
    """``torch.nn.Linear`` whose evaluation of a row does not depend on the other rows, to the last bit.

    Matrix libraries add up in another order where a matrix ends, or where its rows are not aligned. A graph's features
    would then depend, in the last digits, on where in a batch it stands, and the solver, which has ties to break,
    might turn that into another local minimum. Zeros up to a round number of rows and columns leave no such ends.
    In training, when batches are random anyway, nothing is added.
    """

    supports_padding = True

    def forward(self, x: Tensor) -> Tensor:
        if self.training or x.dim() != 2:
            return super().forward(x)
        rows, columns = -x.shape[0] % ROWS, -x.shape[1] % COLUMNS
        return linear(pad(x, (0, columns, 0, rows)), pad(self.weight, (0, columns)), self.bias)[: len(x)]

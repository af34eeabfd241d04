"""Passes over a dataset as CUDA graphs, so that the GPU does not wait for Python.

A step of a small model makes several hundred PyTorch calls, which take the host ten times as long as the GPU. They are
recorded once, for a batch padded to a fixed size, and replayed for other graphs with a single call:

    model, data ─ support ─▶ unsupported_reason? ─▶ logged, and steps run one by one
                     │ None
    recorder ─ steps (forward, loss, backward, optimiser) ─▶ passes: one recorded step per batch size
                                                                │ replay, for each batch
    numbers of graphs ─ padded_batches ─▶ batch of fixed size ─ the recorded step ─▶ sums of loss and score

Contract
========
A model is recorded if each of its modules is of a type in :data:`ROW_WISE`, or declares

    supports_padding = True

in its class. The declaration is not inherited, because a subclass may compute something else. It guarantees:

1. **Padding is ignored.** Trailing rows of ``x`` and ``batch`` are padding; their features are 0, their graph is
   ``batch_size``. Trailing edges are padding as well: each leads from one of these rows to the next. Results and
   gradients of nodes and graphs do not depend on padding. A module that mixes rows calls
   :func:`tfgw.nn.padding.current_padding` in ``forward`` to find out which rows are nodes; without padding it returns
   ``None``.
2. **Padding stays finite**, and so do its derivatives: its gradient is 0, but 0 · ∞ is NaN.
3. **A model returns** ``batch_size`` **rows**, one for each graph. :func:`tfgw.nn.readout.sum_over_graphs` helps.
4. **The work is fixed.** Neither shapes nor Python's control flow depend on the values of tensors, and nothing moves
   between host and GPU (no ``.item()``, no boolean masks). Python code does not run in a replay: its side effects are
   not repeated, except for tensors modified in place. Random numbers come from the GPU's default generator.
5. **An** ``auxiliary_loss`` of the model (:func:`tfgw.train.fit`) is a tensor that each call computes, by these rules.

If support depends on settings or sizes, a module also has a method ``unsupported_reason`` (:class:`LimitedSupport`).

An example is an encoder that centres the features over the nodes of a batch:

    class CentredEncoder(nn.Module):
        supports_padding = True

        def __init__(self, channels: int) -> None:
            super().__init__()
            self.out_channels = channels
            self.conv = torch_geometric.nn.GraphConv(channels, channels)
            self.norm = tfgw.nn.batch_norm.BatchNorm(channels)  # nn.BatchNorm1d would include padding

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            padding = current_padding()
            mean = x.mean(0) if padding is None else (padding.share * x).sum(0)
            return self.norm(self.conv(x - mean, edge_index))
"""

from tfgw.train.cuda_graph.passes import Pass, RecordedPass
from tfgw.train.cuda_graph.recorder import recording
from tfgw.train.cuda_graph.steps import restored, training_step, validation_step
from tfgw.train.cuda_graph.support import ROW_WISE, LimitedSupport, unsupported_reason

__all__ = [
    "ROW_WISE",
    "LimitedSupport",
    "Pass",
    "RecordedPass",
    "recording",
    "restored",
    "training_step",
    "unsupported_reason",
    "validation_step",
]

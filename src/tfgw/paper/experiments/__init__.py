"""The experiments, one file each; see :mod:`tfgw.paper.experiment`."""

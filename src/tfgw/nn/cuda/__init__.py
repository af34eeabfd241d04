"""CUDA kernels for training steps on padded batches: for gathering a batch, layers, the optimiser and projections.

Each ``*_kernel`` module has the ctypes structure that its kernel (``tfgw/ot/cuda/*.cuh``) takes, and the function that
fills it. :mod:`tfgw.nn.cuda.launching` says which tensors are supported, and launches kernels. The callers compute
other tensors by PyTorch operations.
"""

"""The solver on a GPU: CUDA C++ compiled at first use, the same algorithm and results as the C++ core.

run ──▶ solved: what a solve writes
    └─▶ gpu: a device ──▶ host/ (C++): describes a problem to the kernels, in the structs of structs.cuh; launches them
                      ├─▶ compile: kernels.cu for a size class
                      └─▶ driver: where the CUDA driver's functions are
"""

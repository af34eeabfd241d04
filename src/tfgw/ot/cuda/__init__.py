"""The solver on a GPU: CUDA C++ compiled at first use, the same algorithm and results as the C++ core.

run ──▶ layout: the problem as one struct, working memory
    ├─▶ solved: what a solve writes
    └─▶ gpu: a device and its launches ──▶ compile: kernels.cu for a size class, shared_entries.cu
                                       └─▶ driver: the CUDA driver's own calls
"""

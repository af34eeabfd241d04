// Kernels that work on a list of tensors at once. Each tensor has a range of blocks.
#pragma once

#include "warp.cuh"

namespace tfgw {

// The tensor of this block: the last one whose `first_block` is not after it.
template <class Tensor>
TFGW_DEVICE int tensor_of_block(const Tensor* tensors, i64 count) {
  int low = 0, high = int(count);  // the answer is in low … high − 1
#pragma unroll 1
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (tensors[middle].first_block <= block_index()) low = middle;
    else high = middle;
  }
  return low;
}

}  // namespace tfgw

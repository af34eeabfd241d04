// Gradients of the weight and the bias of a linear layer with many rows and few columns. Libraries compute such a product
// by one block that goes over all rows. Here, each block has a tile of the result, and its warps share the rows, four of
// them at a time on the tensor cores. A load of a warp reads eight columns of four rows; if each lane read a row of its
// own, the loads would take four times as long. Sums are accumulated in float64, in an order that is always the same.
#pragma once

#include "block.cuh"

namespace tfgw {

constexpr int kLinearThreads = 512;
constexpr int kLinearWarps = kLinearThreads / 32;
constexpr int kLinearTile = 8;  // rows and columns of the result
constexpr int kLinearRows = 4;  // of a product

// The same layout as `Linear` in nn/cuda/linear_kernel.py. x has `inputs` columns and grad, the gradient of the layer's output,
// has `outputs` columns.
template <class T>
struct Linear {
  const T *x, *grad;
  T *grad_weight, *grad_bias;
  i64 rows, inputs, outputs, x_stride, grad_stride;
};

struct LinearMemory {
  double sums[kLinearWarps][kLinearTile * kLinearTile];
};

// The bias is the weight of an additional input that is always 1.
template <class T>
class LinearGradient {
 public:
  TFGW_DEVICE LinearGradient(const Linear<T>& layer, LinearMemory& memory)
      : l_(layer),
        memory_(memory),
        input_(block_index() % tiles(layer.inputs + 1) * kLinearTile),
        output_(block_index() / tiles(layer.inputs + 1) * kLinearTile) {}

  TFGW_DEVICE void run() {
    const int warp = thread_in_block() / 32;
    double sum[2] = {};
    // A lane beyond the last row or column loads something valid, because branches would serialise the loads.
    const i64 i = input_ + lane() / kLinearRows, o = output_ + lane() / kLinearRows;
    const T* const x = l_.x + (i < l_.inputs ? i : 0);
    const T* const grad = l_.grad + (o < l_.outputs ? o : 0);
    const auto load = [&](i64 first) {
      const i64 row = first + lane() % kLinearRows < l_.rows ? first + lane() % kLinearRows : first;
      return Pair{double(x[row * l_.x_stride]), double(grad[row * l_.grad_stride])};
    };
    unrolled<8>(i64(warp) * kLinearRows, l_.rows, kLinearWarps * kLinearRows, load, [&](i64 first, Pair v) {
      const bool exists = first + lane() % kLinearRows < l_.rows;
      multiply_add(sum, exists ? v.grad : 0.0, !exists ? 0.0 : i < l_.inputs ? v.x : 1.0);
    });
#pragma unroll
    for (int s = 0; s < 2; ++s) memory_.sums[warp][2 * lane() + s] = sum[s];
    sync_block();
    if (thread_in_block() < kLinearTile * kLinearTile) write(thread_in_block());
  }

 private:
  struct Pair {
    double x, grad;
  };

  TFGW_DEVICE static i64 tiles(i64 count) { return (count + kLinearTile - 1) / kLinearTile; }

  TFGW_DEVICE void write(int entry) const {
    const i64 i = input_ + entry % kLinearTile, o = output_ + entry / kLinearTile;
    if (o >= l_.outputs || i > l_.inputs) return;
    double total = 0;
#pragma unroll
    for (int w = 0; w < kLinearWarps; ++w) total += memory_.sums[w][entry];
    if (i < l_.inputs) l_.grad_weight[o * l_.inputs + i] = T(total);
    else l_.grad_bias[o] = T(total);
  }

  const Linear<T>& l_;
  LinearMemory& memory_;
  const i64 input_, output_;  // the first of the tile
};

}  // namespace tfgw

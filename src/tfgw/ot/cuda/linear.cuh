// Gradients of the weight and the bias of a linear layer with many rows and few columns. Libraries compute such a product
// by one block that goes over all rows. Here, each block has a tile of the result, and its threads share the rows. Sums
// are accumulated in float64, in an order that is always the same.
#pragma once

#include "warp.cuh"

namespace tfgw {

constexpr int kLinearThreads = 256;
constexpr int kLinearTile = 8;  // rows and columns of the result

// The same layout as `Linear` in nn/layer_kernels.py. x has `inputs` columns and grad, the gradient of the layer's output,
// has `outputs` columns.
template <class T>
struct Linear {
  const T *x, *grad;
  T *grad_weight, *grad_bias;
  i64 rows, inputs, outputs, x_stride, grad_stride;
};

struct LinearMemory {
  double sums[kLinearThreads / 32][kLinearTile * kLinearTile];
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
    double sum[kLinearTile * kLinearTile] = {};
#pragma unroll 1
    for (i64 row = thread_in_block(); row < l_.rows; row += kLinearThreads) add(row, sum);
    reduce<16>(sum);
    // Now each lane has two of the sums over its warp.
#pragma unroll
    for (int s = 0; s < 2; ++s) memory_.sums[thread_in_block() / 32][2 * lane() + s] = sum[s];
    sync_block();
    if (thread_in_block() < kLinearTile * kLinearTile) write(thread_in_block());
  }

 private:
  TFGW_DEVICE static i64 tiles(i64 count) { return (count + kLinearTile - 1) / kLinearTile; }

  TFGW_DEVICE void add(i64 row, double (&sum)[kLinearTile * kLinearTile]) const {
    double x[kLinearTile], grad[kLinearTile];
#pragma unroll
    for (int s = 0; s < kLinearTile; ++s) {  // beyond the last column, load something valid: branches would serialise
      const i64 i = input_ + s, o = output_ + s;
      const double value = double(l_.x[row * l_.x_stride + (i < l_.inputs ? i : 0)]);
      x[s] = i < l_.inputs ? value : 1.0;
      grad[s] = double(l_.grad[row * l_.grad_stride + (o < l_.outputs ? o : 0)]);
    }
#pragma unroll
    for (int o = 0; o < kLinearTile; ++o)
#pragma unroll
      for (int i = 0; i < kLinearTile; ++i)
        sum[o * kLinearTile + i] = fma_rn(grad[o], x[i], sum[o * kLinearTile + i]);
  }

  // Sums over the lanes of a warp. In each round, half of the lanes continue with one half of the sums.
  template <int kDistance>
  TFGW_DEVICE static void reduce(double* sum) {
    const bool upper = lane() & kDistance;
#pragma unroll
    for (int s = 0; s < 2 * kDistance; ++s) {
      const double own = upper ? sum[s + 2 * kDistance] : sum[s], other = upper ? sum[s] : sum[s + 2 * kDistance];
      sum[s] = own + shfl_xor(other, kDistance);
    }
    if constexpr (kDistance > 1) reduce<kDistance / 2>(sum);
  }

  TFGW_DEVICE void write(int entry) const {
    const i64 i = input_ + entry % kLinearTile, o = output_ + entry / kLinearTile;
    if (o >= l_.outputs || i > l_.inputs) return;
    double total = 0;
#pragma unroll
    for (int w = 0; w < kLinearThreads / 32; ++w) total += memory_.sums[w][entry];
    if (i < l_.inputs) l_.grad_weight[o * l_.inputs + i] = T(total);
    else l_.grad_bias[o] = T(total);
  }

  const Linear<T>& l_;
  LinearMemory& memory_;
  const i64 input_, output_;  // the first of the tile
};

}  // namespace tfgw

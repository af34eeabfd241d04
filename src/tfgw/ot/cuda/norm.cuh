// Batch normalisation of the nodes of a padded batch, and its derivative. Channels are independent, so a block has a few
// of them and needs nothing from other blocks: one kernel instead of sixteen PyTorch operations on small matrices, each
// of which takes longer to launch than to run. Sums are accumulated in float64, in an order that is always the same.
#pragma once

#include "block.cuh"

namespace tfgw {

constexpr int kNormThreads = 1024;
constexpr int kNormChannels = 2;  // of a block: with more, there are too few blocks for small networks
constexpr int kNormLanes = kNormThreads / kNormChannels;
constexpr int kNormWarps = kNormThreads / 32;

// The same layout as `Norm` in nn/cuda/norm_kernel.py. Matrices have `rows` rows, of which the first `*nodes` are nodes.
template <class T>
struct Norm {
  const T *x, *weight, *bias, *nodes;
  T* out;
  double *mean, *inverse;  // for the backward pass; the second is the inverse of the standard deviation
  T *running_mean, *running_variance;
  i64* batches;
  const T* grad;
  T *grad_x, *grad_weight, *grad_bias;
  i64 rows, channels, grad_stride, relu;
  double eps, momentum;
};

struct NormMemory {
  double sums[2][kNormWarps * kNormChannels];
};

template <class T>
class NormOfChannel {
 public:
  TFGW_DEVICE NormOfChannel(const Norm<T>& norm, NormMemory& memory)
      : n_(norm),
        memory_(memory),
        nodes_(i64(*norm.nodes)),
        channel_(i64(block_index()) * kNormChannels + thread_in_block() % kNormChannels),
        first_(thread_in_block() / kNormChannels),
        exists_(channel_ < norm.channels) {}

  TFGW_DEVICE void forward() {
    const double count = double(*n_.nodes);
    double mean = 0, variance = 0;
    const auto value = [&](i64 i) { return double(n_.x[at(i)]); };
    over(nodes_, value, [&](i64, double x) { mean += x; });
    mean = sum(mean, memory_.sums[0]) / count;
    over(nodes_, value, [&](i64, double x) { variance = fma_rn(x - mean, x - mean, variance); });
    variance = sum(variance, memory_.sums[1]) / count;
    if (!exists_) return;  // after the last barrier
    const bool constant = is_constant(variance);
    const double inverse = constant ? 0 : 1 / sqrt(variance + n_.eps);
    const double scale = double(n_.weight[channel_]) * inverse, bias = double(n_.bias[channel_]);
    // Padding is set to the bias: scaled like nodes of tiny variance, it would grow from layer to layer.
    over(n_.rows, value, [&](i64 i, double x) {
      const double y = i < nodes_ ? fma_rn(x - mean, scale, bias) : bias;
      n_.out[at(i)] = T(n_.relu && y <= 0 ? 0.0 : y);
    });
    if (first_ > 0) return;
    n_.mean[channel_] = mean, n_.inverse[channel_] = inverse;
    track(n_.running_mean[channel_], mean);
    track(n_.running_variance[channel_], constant ? 1 : variance * count / (count > 2 ? count - 1 : 1));
    if (channel_ == 0) ++*n_.batches;
  }

  TFGW_DEVICE void backward() {
    const double mean = exists_ ? n_.mean[channel_] : 0, inverse = exists_ ? n_.inverse[channel_] : 0;
    const auto values = [&](i64 i) {
      const double grad = double(n_.grad[i * n_.grad_stride + channel_]), y = n_.relu ? double(n_.out[at(i)]) : 1.0;
      return Values{y <= 0 ? 0.0 : grad, (double(n_.x[at(i)]) - mean) * inverse};
    };
    double total = 0, along = 0;
    over(nodes_, values, [&](i64, Values v) { total += v.grad, along = fma_rn(v.grad, v.normalised, along); });
    total = sum(total, memory_.sums[0]), along = sum(along, memory_.sums[1]);
    if (!exists_) return;
    const double scale = double(n_.weight[channel_]) * inverse, share = 1 / double(*n_.nodes);
    over(n_.rows, values, [&](i64 i, Values v) {
      const double through = fma_rn(v.normalised, along, total) * share;
      n_.grad_x[at(i)] = T(i < nodes_ ? (v.grad - through) * scale : 0.0);
    });
    if (first_ > 0) return;
    n_.grad_weight[channel_] = T(along), n_.grad_bias[channel_] = T(total);
  }

 private:
  struct Values {
    double grad, normalised;
  };

  // As in nn/batch_norm.py: 16 times the machine epsilon of T.
  TFGW_DEVICE bool is_constant(double variance) const {
    return variance <= (sizeof(T) == sizeof(double) ? 0x1p-48 : 0x1p-19) * n_.eps;
  }

  TFGW_DEVICE void track(T& running, double value) const {
    running = T(fma_rn(n_.momentum, value - double(running), double(running)));
  }

  TFGW_DEVICE i64 at(i64 row) const { return row * n_.channels + channel_; }

  // visit(row, load(row)) for the rows of this thread, if its channel exists.
  template <class Load, class Visit>
  TFGW_DEVICE void over(i64 rows, Load load, Visit visit) const {
    unrolled<4>(first_, exists_ ? rows : 0, kNormLanes, load, visit);
  }

  // Sum over the threads of a channel, the same on each of them. `sums` is used once.
  TFGW_DEVICE static double sum(double own, double* sums) {
#pragma unroll
    for (int distance = kNormChannels; distance < 32; distance *= 2) own += shfl_xor(own, distance);
    if (lane() < kNormChannels) sums[thread_in_block() / 32 * kNormChannels + lane()] = own;
    sync_block();
    double found = 0;
#pragma unroll
    for (int i = lane(); i < kNormWarps * kNormChannels; i += 32) found += sums[i];
#pragma unroll
    for (int distance = kNormChannels; distance < 32; distance *= 2) found += shfl_xor(found, distance);
    return found;
  }

  const Norm<T>& n_;
  NormMemory& memory_;
  const i64 nodes_, channel_, first_;
  const bool exists_;
};

}  // namespace tfgw

// Batch normalisation of the nodes of a padded batch, and its derivative. Channels are independent, so a block has a few
// of them and needs nothing from other blocks: one kernel instead of sixteen PyTorch operations on small matrices, each
// of which takes longer to launch than to run. Sums are accumulated in float64, in an order that is always the same.
#pragma once

#include "warp.cuh"

namespace tfgw {

constexpr int kNormThreads = 512;
constexpr int kNormChannels = 4;  // of a block: a row of them is 32 bytes of float64, the unit of a memory access
constexpr int kNormLanes = kNormThreads / kNormChannels;
constexpr int kNormWarps = kNormThreads / 32;

// The same layout as `Norm` in nn/norm_kernels.py. Matrices have `rows` rows, of which the first `*nodes` are nodes.
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
  double sums[kNormWarps * kNormChannels];
};

template <class T>
class NormOfChannel {
 public:
  // Sums are over the first `nodes` rows.
  TFGW_DEVICE NormOfChannel(const Norm<T>& norm, NormMemory& memory, i64 nodes)
      : n_(norm),
        memory_(memory),
        channel_(i64(block_index()) * kNormChannels + thread_in_block() % kNormChannels),
        first_(thread_in_block() / kNormChannels),
        nodes_(channel_ < norm.channels ? nodes : 0),
        rows_(channel_ < norm.channels ? norm.rows : 0) {}

  TFGW_DEVICE void forward() {
    const double count = double(*n_.nodes);
    const double mean = sum([&](i64, i64 at) { return double(n_.x[at]); }) / count;
    const double variance = sum([&](i64, i64 at) {
      const double centred = double(n_.x[at]) - mean;
      return centred * centred;
    }) / count;
    const double inverse = 1 / sqrt(variance + n_.eps);
    if (channel_ >= n_.channels) return;  // after the last barrier
    const double scale = double(n_.weight[channel_]) * inverse, bias = double(n_.bias[channel_]);
    // Padding is set to the bias: scaled like nodes of tiny variance, it would grow from layer to layer.
#pragma unroll 4
    for (i64 i = first_; i < rows_; i += kNormLanes) {
      const i64 at = i * n_.channels + channel_;
      const double y = i < nodes_ ? fma_rn(double(n_.x[at]) - mean, scale, bias) : bias;
      n_.out[at] = T(n_.relu && y <= 0 ? 0.0 : y);
    }
    if (first_ > 0) return;
    n_.mean[channel_] = mean, n_.inverse[channel_] = inverse;
    track(n_.running_mean[channel_], mean);
    track(n_.running_variance[channel_], variance * count / (count > 2 ? count - 1 : 1));
    if (channel_ == 0) ++*n_.batches;
  }

  TFGW_DEVICE void backward() {
    const bool exists = channel_ < n_.channels;
    const double mean = exists ? n_.mean[channel_] : 0, inverse = exists ? n_.inverse[channel_] : 0;
    const double total = sum([&](i64 i, i64 at) { return grad(i, at); });
    const double along =
        sum([&](i64 i, i64 at) { return grad(i, at) * (double(n_.x[at]) - mean); }) * inverse;
    if (!exists) return;
    const double scale = double(n_.weight[channel_]) * inverse, share = 1 / double(*n_.nodes);
#pragma unroll 4
    for (i64 i = first_; i < rows_; i += kNormLanes) {
      const i64 at = i * n_.channels + channel_;
      const double through = fma_rn((double(n_.x[at]) - mean) * inverse, along, total) * share;
      n_.grad_x[at] = T(i < nodes_ ? (grad(i, at) - through) * scale : 0.0);
    }
    if (first_ > 0) return;
    n_.grad_weight[channel_] = T(along), n_.grad_bias[channel_] = T(total);
  }

  // Sums of `grad` alone: the gradient of the bias of a linear layer.
  TFGW_DEVICE void column_sums() {
    const double total = sum([&](i64 i, i64) { return double(n_.grad[i * n_.grad_stride + channel_]); });
    if (channel_ < n_.channels && first_ == 0) n_.grad_bias[channel_] = T(total);
  }

 private:
  TFGW_DEVICE void track(T& running, double value) const {
    running = T(fma_rn(n_.momentum, value - double(running), double(running)));
  }

  TFGW_DEVICE double grad(i64 i, i64 at) const {
    if (n_.relu && n_.out[at] <= T(0)) return 0;
    return double(n_.grad[i * n_.grad_stride + channel_]);
  }

  // Sum over the nodes, for the channel of each thread.
  template <class Term>
  TFGW_DEVICE double sum(Term term) {
    double own = 0;
#pragma unroll 4
    for (i64 i = first_; i < nodes_; i += kNormLanes) own += term(i, i * n_.channels + channel_);
    for (int distance = kNormChannels; distance < 32; distance *= 2) own += shfl_xor(own, distance);
    const int warp = thread_in_block() / 32;
    sync_block();  // the previous sum has been read
    if (lane() < kNormChannels) memory_.sums[warp * kNormChannels + lane()] = own;
    sync_block();
    double found = 0;
    for (int w = 0; w < kNormWarps; ++w) found += memory_.sums[w * kNormChannels + lane() % kNormChannels];
    return found;
  }

  const Norm<T>& n_;
  NormMemory& memory_;
  const i64 channel_, first_, nodes_, rows_;
};

}  // namespace tfgw

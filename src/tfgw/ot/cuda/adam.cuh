// A step of Adam or AdamW for all parameters, which changes nothing if the loss is not finite. PyTorch's fused optimiser
// has a few blocks per launch, which are short of arithmetic units in float64, and a launch for each group and every 36
// tensors. Here, a first kernel counts the step and computes the factors of each tensor, and a second one updates
// the entries. Numbers are float64 between loads and stores.
#pragma once

#include "tensor_list.cuh"

namespace tfgw {

constexpr int kAdamThreads = 256;
constexpr int kAdamEntries = 512;  // of a block
constexpr int kAdamGroups = 4;
constexpr int kAdamSteps = 192, kAdamTensors = 80;  // of a launch, whose argument has at most 4096 bytes

// The same layout as the classes of these names in nn/cuda/adam_kernel.py.
struct AdamGroup {
  const float* rate;  // learning rate, or null if it is `constant_rate`
  double constant_rate, beta1, beta2, eps, weight_decay;
  i64 decoupled;  // AdamW
};

struct AdamFactors {
  double decay, l2, beta1, beta2, step_size, inverse_root, eps;
};

struct AdamStep {
  float* step;
  i64 group;
};

template <class T>
struct AdamSteps {
  i64 count;
  const T* loss;
  AdamFactors* factors;
  AdamGroup groups[kAdamGroups];
  AdamStep tensors[kAdamSteps];
};

template <class T>
struct AdamTensor {
  T* value;
  const T* grad;
  T *mean, *square;  // moving averages of the gradient and its square
  i64 size, first_block;
};

template <class T>
struct AdamUpdate {
  i64 count;
  const T* loss;
  const AdamFactors* factors;
  AdamTensor<T> tensors[kAdamTensors];
};

template <class T>
TFGW_DEVICE bool is_finite(T v) {
  return v - v == 0;
}

template <class T>
TFGW_DEVICE void count_steps(const AdamSteps<T>& a) {
  const int t = thread_in_block();
  if (t >= a.count || !is_finite(*a.loss)) return;
  const AdamGroup& group = a.groups[a.tensors[t].group];
  const double step = double(*a.tensors[t].step) + 1, rate = group.rate ? double(*group.rate) : group.constant_rate;
  *a.tensors[t].step = float(step);
  a.factors[t] = {
      group.decoupled ? rate * group.weight_decay : 0.0,
      group.decoupled ? 0.0 : group.weight_decay,
      group.beta1,
      group.beta2,
      rate / (1 - pow(group.beta1, step)),
      1 / sqrt(1 - pow(group.beta2, step)),
      group.eps,
  };
}

template <class T>
TFGW_DEVICE void update_entries(const AdamUpdate<T>& a) {
  if (!is_finite(*a.loss)) return;
  const int index = tensor_of_block(a.tensors, a.count);
  const AdamTensor<T>& tensor = a.tensors[index];
  const AdamFactors f = a.factors[index];
  const i64 first = (block_index() - tensor.first_block) * kAdamEntries + thread_in_block();
#pragma unroll
  for (int s = 0; s < kAdamEntries / kAdamThreads; ++s) {
    const i64 i = first + s * kAdamThreads;
    if (i >= tensor.size) return;
    const double value = double(tensor.value[i]), grad = fma_rn(f.l2, value, double(tensor.grad[i]));
    const double mean = fma_rn(f.beta1, double(tensor.mean[i]), (1 - f.beta1) * grad);
    const double square = fma_rn(f.beta2, double(tensor.square[i]), (1 - f.beta2) * grad * grad);
    tensor.mean[i] = T(mean), tensor.square[i] = T(square);
    const double step = f.step_size * mean / fma_rn(sqrt(square), f.inverse_root, f.eps);
    tensor.value[i] = T(fma_rn(-f.decay, value, value) - step);
  }
}

}  // namespace tfgw

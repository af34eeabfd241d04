#include "layers.hpp"

#include <algorithm>
#include <cmath>

#include "kernels.hpp"

namespace tfgw {
namespace {

constexpr int64_t kBlock = 64;  // rows that pass all steps before the next ones do, so that they stay in the cache

void linear(const RowStep<double>& step, int64_t rows, const double* x, double* y) {
  kernels().linear(rows, step.in, step.out, x, step.weight, step.bias, y);
}
void linear(const RowStep<float>& step, int64_t rows, const float* x, float* y) {
  kernels().linear_single(rows, step.in, step.out, x, step.weight, step.bias, y);
}

void scale(const RowStep<double>& step, int64_t rows, double* x) {
  kernels().scale_columns(rows, step.in, step.factor.data(), step.shift.data(), x);
}
void scale(const RowStep<float>& step, int64_t rows, float* x) {
  kernels().scale_columns_single(rows, step.in, step.factor.data(), step.shift.data(), x);
}

// Copies rows between matrices of different strides.
template <class T>
void copy_rows(int64_t rows, int64_t columns, const T* from, int64_t from_stride, T* to, int64_t to_stride) {
  for (int64_t i = 0; i < rows; ++i) std::copy_n(from + i * from_stride, columns, to + i * to_stride);
}

}  // namespace

template <class T>
RowStep<T> norm_step(int64_t columns, const T* mean, const T* variance, const T* weight, const T* bias, double eps) {
  RowStep<T> step{RowStep<T>::Kind::scale, columns, columns};
  step.factor.resize(size_t(columns)), step.shift.resize(size_t(columns));
  for (int64_t c = 0; c < columns; ++c) {
    step.factor[c] = (weight ? weight[c] : T(1)) / std::sqrt(variance[c] + T(eps));
    step.shift[c] = (bias ? bias[c] : T(0)) - mean[c] * step.factor[c];
  }
  return step;
}

template <class T>
void map_rows(const RowMap<T>& map, int64_t rows, int64_t in, const T* x, T* out, int64_t stride) {
  int64_t widest = in;
  for (const RowStep<T>& step : map) widest = std::max(widest, step.out);
  const int64_t block = std::min(rows, kBlock);
  Aligned<T> now(size_t(block * widest)), next(size_t(block * widest));
  for (int64_t first = 0; first < rows; first += block) {
    const int64_t count = std::min(block, rows - first);
    int64_t columns = in;
    std::copy_n(x + first * in, count * in, now.data());
    for (const RowStep<T>& step : map) {
      switch (step.kind) {
        case RowStep<T>::Kind::linear:
          linear(step, count, now.data(), next.data());
          now.swap(next);
          columns = step.out;
          break;
        case RowStep<T>::Kind::scale: scale(step, count, now.data()); break;
        case RowStep<T>::Kind::relu:  // keeps what is not a number
          for (int64_t e = 0; e < count * columns; ++e) now[e] = now[e] < 0 ? T(0) : now[e];
          break;
      }
    }
    copy_rows(count, columns, now.data(), columns, out + first * stride, stride);
  }
}

template <class T>
void encode_nodes(const GinInput<T>& in, int64_t columns, T* out) {
  copy_rows(in.nodes, in.features, in.x, in.features, out, columns);
  int64_t width = in.features;
  T* level = out;
  Aligned<T> sums;
  for (const GinLayer<T>& layer : in.layers) {
    sums.assign(size_t(in.nodes * width), T(0));
    for (int64_t e = 0; e < in.edges; ++e) {
      const T* const source = level + in.edge_index[e] * columns;
      T* const sum = sums.data() + in.edge_index[in.edges + e] * width;
      for (int64_t c = 0; c < width; ++c) sum[c] += source[c];
    }
    for (int64_t i = 0; i < in.nodes; ++i)
      for (int64_t c = 0; c < width; ++c) sums[i * width + c] += layer.own * level[i * columns + c];
    level += width;
    map_rows(layer.map, in.nodes, width, sums.data(), level, columns);
    width = layer.map.empty() ? width : layer.map.back().out;
  }
}

template RowStep<float> norm_step(int64_t, const float*, const float*, const float*, const float*, double);
template RowStep<double> norm_step(int64_t, const double*, const double*, const double*, const double*, double);
template void map_rows(const RowMap<float>&, int64_t, int64_t, const float*, float*, int64_t);
template void map_rows(const RowMap<double>&, int64_t, int64_t, const double*, double*, int64_t);
template void encode_nodes(const GinInput<float>&, int64_t, float*);
template void encode_nodes(const GinInput<double>&, int64_t, double*);

}  // namespace tfgw

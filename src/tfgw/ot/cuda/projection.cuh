// The projection of the parameters of templates onto their constraint sets, in place: one kernel for all layers instead of
// some forty operations on short vectors. Rows on the simplex need no sorting: a warp raises the threshold until no entry
// above it falls below. Numbers are float64 between loads and stores.
#pragma once

#include "tensor_list.cuh"

namespace tfgw {

constexpr int kProjectionThreads = 256;
constexpr int kProjectionRows = kProjectionThreads / 32;     // of a block
constexpr int kProjectionEntries = 4 * kProjectionThreads;  // of a block
constexpr int kProjectionTensors = 80;                       // of a launch, whose argument has at most 4096 bytes

// The same layout as the classes of these names in nn/cuda/projection_kernel.py. Rows of `columns` entries are projected onto
// the simplex; if there are none, entries are projected onto lower … upper.
template <class T>
struct ProjectedTensor {
  T* values;
  i64 size, columns;
  double lower, upper;
  i64 first_block;
};

template <class T>
struct Projection {
  i64 count;
  ProjectedTensor<T> tensors[kProjectionTensors];
};

// As `project_simplex` in nn/projections.py: max(v − θ, 0), with the largest entry shifted to 0. θ follows from the sum of
// the entries above it. It is first computed from all entries, then repeatedly from those above it, as long as it grows.
// (Michelot: A finite algorithm for finding the projection of a point onto the canonical simplex of Rⁿ.) Entries equal to
// the exact θ, such as the zeros of a row that is on the simplex already, may round to either side of it.
template <class T>
TFGW_DEVICE void project_row(T* row, i64 columns) {
  double shift = double(row[0]);
  for (i64 j = lane(); j < columns; j += 32) shift = double(row[j]) > shift ? double(row[j]) : shift;
  shift = warp_max(shift);
  double sum = 0;
  for (i64 j = lane(); j < columns; j += 32) sum += double(row[j]) - shift;
  double theta = (warp_sum(sum) - 1) / double(columns);
#pragma unroll 1
  for (;;) {
    double above = 0, number = 0;
    for (i64 j = lane(); j < columns; j += 32) {
      const double v = double(row[j]) - shift;
      if (v > theta) above += v, number += 1;
    }
    const double next = (warp_sum(above) - 1) / warp_sum(number);
    if (!(next > theta)) break;  // also if θ is NaN because an entry is; then all entries become NaN
    theta = next;
  }
  for (i64 j = lane(); j < columns; j += 32) {
    const double v = double(row[j]) - shift - theta;
    row[j] = T(v < 0 ? 0.0 : v);
  }
}

template <class T>
TFGW_DEVICE void project(const Projection<T>& p) {
  const ProjectedTensor<T>& tensor = p.tensors[tensor_of_block(p.tensors, p.count)];
  const i64 block = block_index() - tensor.first_block;
  if (tensor.columns) {
    const i64 first = (block * kProjectionRows + thread_in_block() / 32) * tensor.columns;
    if (first < tensor.size) project_row(tensor.values + first, tensor.columns);
    return;
  }
#pragma unroll
  for (int s = 0; s < kProjectionEntries / kProjectionThreads; ++s) {
    const i64 i = block * kProjectionEntries + s * kProjectionThreads + thread_in_block();
    if (i >= tensor.size) return;
    const double v = double(tensor.values[i]);
    tensor.values[i] = T(v < tensor.lower ? tensor.lower : v > tensor.upper ? tensor.upper : v);
  }
}

}  // namespace tfgw

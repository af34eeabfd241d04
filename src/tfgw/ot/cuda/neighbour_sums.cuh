// Sums over the neighbours of each node, as in a GIN layer. The library's operations gather a message for each edge and
// add it to its target, in no fixed order. Here, a warp adds the neighbours of its node, in the order of the edges.
#pragma once

#include "warp.cuh"

namespace tfgw {

constexpr int kNeighbourThreads = 256;
constexpr int kNodesPerBlock = kNeighbourThreads / 32;

// The same layout as `Neighbours` in nn/cuda/neighbour_kernel.py. out_i = own · x_i + Σ x_j over the edges (i, j). The
// edges are sorted by their first node.
template <class T>
struct Neighbours {
  const T* x;
  const i64 *first, *second;  // nodes of each edge
  T* out;
  i64 rows, edges, channels, x_stride;
  double own;
};

template <class T>
class NeighbourSums {
 public:
  TFGW_DEVICE explicit NeighbourSums(const Neighbours<T>& n) : n_(n) {}

  TFGW_DEVICE void run() {
    const i64 node = i64(block_index()) * kNodesPerBlock + thread_in_block() / 32;
    if (node >= n_.rows) return;  // a whole warp
    const i64 begin = first_edge_from(node), end = first_edge_from(node + 1);
#pragma unroll 1
    for (i64 c = lane(); c < n_.channels; c += 32) {
      double sum = n_.own * double(n_.x[node * n_.x_stride + c]);
#pragma unroll 4
      for (i64 e = begin; e < end; ++e) sum += double(n_.x[n_.second[e] * n_.x_stride + c]);
      n_.out[node * n_.channels + c] = T(sum);
    }
  }

 private:
  // The number of edges whose first node is below `node`. In each round, every lane looks at one of 32 places.
  TFGW_DEVICE i64 first_edge_from(i64 node) const {
    i64 low = 0, high = n_.edges;  // the answer is in low … high
#pragma unroll 1
    while (low < high) {
      const i64 step = (high - low + 31) / 32, place = low + lane() * step;
      const u32 before = ballot(place < high && n_.first[place < high ? place : low] < node);
      if (before == 0) return low;
      const i64 last = low + (popc(before) - 1) * step;  // the last place that is before
      high = last + step < high ? last + step : high;
      low = last + 1;
    }
    return low;
  }

  const Neighbours<T>& n_;
};

}  // namespace tfgw

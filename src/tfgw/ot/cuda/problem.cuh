// The problem as the kernels read it (structs.cuh has the struct).
#pragma once

#include "warp.cuh"

namespace tfgw {

TFGW_DEVICE Entry read_only(const Entry* at) {
  return {read_only(&at->weight), read_only(&at->row), read_only(&at->col)};
}

TFGW_DEVICE void report_invalid(const Problem& p) { p.queue[kInvalid] = 1, *p.invalid = 1; }
// In a captured CUDA graph the host cannot read the flag, so invalid input yields NaN distances.
TFGW_DEVICE void report_in_distances(const Problem& p) {
  const i64 threads = i64(blocks_in_grid()) * threads_in_block();
#pragma unroll 1
  for (i64 i = i64(block_index()) * threads_in_block() + thread_in_block(); i < p.graphs * p.templates; i += threads)
    p.distance[i] = double_of(0x7ff8000000000000);
}

// The packed (sliced ELLPACK) format of a symmetric C that is not multiplied as a dense matrix: rows sorted by length,
// longest first, in groups of kGroup rows (bits.cuh) that are padded to the length of their first row. Entry d of row r
// of group q is at packed_at + packed_begin[q] + d · kGroup + r; padding has weight 0. `packed_row` is the order of
// rows. Because rows are sorted, the padding is at most kGroup times the longest row.
TFGW_DEVICE i64 packed_at(const Problem& p, int first) { return p.row_start[first] + kPackedRows * i64(first); }
TFGW_DEVICE int* packed_begin(const Problem& p, int b) { return p.packed_begin + p.ptr[b] + b; }

// One graph of the problem, as the solver reads it.
struct GraphView {
  int n, first;
  bool symmetric, sparse;
  const double* dense;  // C as a dense matrix; if `sparse`, only with few zeros
};

TFGW_DEVICE bool is_full(const Problem& p, int first, int n) {
  return i64(n) * n <= kFull * i64(p.row_start[first + n] - p.row_start[first]);
}
TFGW_DEVICE double* full_matrix(const Problem& p, int first) { return p.full + kFull * i64(p.row_start[first]); }

TFGW_DEVICE GraphView graph_view(const Problem& p, int b) {
  const int first = p.ptr[b], n = p.ptr[b + 1] - first;
  const double* dense = p.dense ? p.dense + p.dense_at[b] : nullptr;
  if (p.edge_index && is_full(p, first, n)) dense = full_matrix(p, first);
  return {n, first, p.symmetric[b] != 0, p.edge_index != nullptr, dense};
}

// Whether a pair is not solved. It is then treated as if its graph were empty.
TFGW_DEVICE bool is_skipped(const Problem& p, int b, int k) { return p.skipped && p.skipped[b * p.templates + k]; }

TFGW_DEVICE bool has_structure(const Problem& p) { return p.edge_index || p.dense; }

}  // namespace tfgw

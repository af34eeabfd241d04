// Kernel `starts_spread`: the difference between the highest and the lowest value of all starts, one thread per pair.
#pragma once

#include "problem.cuh"
#include "starts_memory.cuh"

namespace tfgw {

// Starts after one that has reached the lowest possible value do not count, because only some of them run.
TFGW_DEVICE double spread_of(const Starts& starts, i64 pair) {
  const BestStart& best = starts.best[pair];
  const double* const value = starts.value + pair * starts.count;
  double highest = best.value;
#pragma unroll 1
  for (int s = 0; s < starts.count && s <= best.at_floor; ++s) highest = larger(highest, value[s]);
  return highest - best.value;
}

TFGW_DEVICE void write_spreads(const Problem& p, const Starts& starts) {
  const i64 threads = i64(blocks_in_grid()) * threads_in_block();
#pragma unroll 1
  for (i64 i = i64(block_index()) * threads_in_block() + thread_in_block(); i < p.graphs * p.templates; i += threads) {
    const int b = int(i / p.templates), k = int(i % p.templates);
    const bool is_solved = p.ptr[b + 1] > p.ptr[b] && !is_skipped(p, b, k), is_linear = p.alpha[k] <= 0;
    starts.spread[i] = is_solved && !is_linear ? spread_of(starts, i) : 0.0;  // a linear problem has one start
  }
}

}  // namespace tfgw

// The warps that solve one pair: a single warp, or all warps of a block. All of them run the algorithm on the same
// numbers and make the same decisions; each does its share of the work on matrices and arcs.
#pragma once

#include "warp.cuh"

namespace tfgw {

template <int kWarps>
struct Team {
  static constexpr bool kSingleWarp = kWarps == 1;
  static constexpr int kSize = kWarps;
  static constexpr int kThreads = 32 * kWarps;
  TFGW_DEVICE static int warp() { return kSingleWarp ? 0 : thread_in_block() / 32; }
  TFGW_DEVICE static int thread() { return kSingleWarp ? lane() : thread_in_block(); }
  TFGW_DEVICE static void sync() {
    if constexpr (kSingleWarp) sync_warp();
    else sync_block();
  }
  TFGW_DEVICE static bool any(bool mine) {  // also a barrier
    if constexpr (!kSingleWarp) return any_in_block(mine);
    sync_warp();  // a ballot does not order memory accesses
    return ballot(mine) != 0;
  }
};

// visit(entry, row, column) for all entries of a (rows, P) matrix, with a fixed assignment to threads.
template <int P, class Team, class Visit>
TFGW_DEVICE void each_entry(int rows, Visit visit) {
  static_assert(Team::kThreads % P == 0, "a thread stays in its column");
  const int k = Team::thread() % P;
#pragma unroll 2
  for (int i = Team::thread() / P; i < rows; i += Team::kThreads / P) visit(i * P + k, i, k);
}

}  // namespace tfgw

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

// Calls visit(column, first row, step between rows) for each column of which this thread has entries, if the threads of
// a team share the entries of a matrix of P columns: one column, or several if there are more columns than threads.
template <int P, class Team, class Visit>
TFGW_DEVICE void each_own_column(Visit visit) {
  static_assert(Team::kThreads % P == 0 || P % Team::kThreads == 0, "a thread stays in its columns");
  if constexpr (P <= Team::kThreads) {
    visit(Team::thread() % P, Team::thread() / P, Team::kThreads / P);
  } else {
#pragma unroll 1
    for (int k = Team::thread(); k < P; k += Team::kThreads) visit(k, 0, 1);
  }
}

// visit(entry, row, column) for all entries of a (rows, P) matrix, with a fixed assignment to threads.
template <int P, class Team, class Visit>
TFGW_DEVICE void each_entry(int rows, Visit visit) {
  each_own_column<P, Team>([&](int k, int first, int step) {
#pragma unroll 2
    for (int i = first; i < rows; i += step) visit(i * P + k, i, k);
  });
}

}  // namespace tfgw

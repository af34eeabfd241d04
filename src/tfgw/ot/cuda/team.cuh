// The warps that solve one pair: one on its own, or all of a block. They all run the algorithm side by side and come to
// the same decisions; what goes over matrices or arcs, each does its share of.
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
  TFGW_DEVICE static bool any(bool mine) {  // a meeting, too
    if constexpr (!kSingleWarp) return any_in_block(mine);
    sync_warp();  // a ballot does not wait for memory
    return ballot(mine) != 0;
  }
};

// visit(entry, row, column) for all of a (rows, P) matrix, each thread always the same ones.
template <int P, class Team, class Visit>
TFGW_DEVICE void each_entry(int rows, Visit visit) {
  static_assert(Team::kThreads % P == 0, "a thread stays in its column");
  const int k = Team::thread() % P;
#pragma unroll 2
  for (int i = Team::thread() / P; i < rows; i += Team::kThreads / P) visit(i * P + k, i, k);
}

}  // namespace tfgw

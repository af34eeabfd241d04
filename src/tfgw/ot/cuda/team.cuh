// The warps that solve one pair: one on its own, or all of a block. The first warp leads: it runs the algorithm, and
// the others help with what goes over whole matrices.
#pragma once

#include "warp.cuh"

namespace tfgw {

template <int kWarps>
struct Team {
  static constexpr bool kAlone = kWarps == 1;
  static constexpr int kSize = kWarps;
  static constexpr int kThreads = 32 * kWarps;
  TFGW_DEVICE static int warp() { return kAlone ? 0 : thread_in_block() / 32; }
  TFGW_DEVICE static int thread() { return kAlone ? lane() : thread_in_block(); }
  TFGW_DEVICE static void meet() {
    if constexpr (kAlone) sync();
    else sync_block();
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

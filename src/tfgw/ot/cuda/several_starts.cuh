// Scheduling of several starts: an item of the queue is one start of a pair.
#pragma once

#include "solve_block.cuh"
#include "start_solver.cuh"

namespace tfgw {

class SeveralStarts {
 public:
  static constexpr bool kSpills = true;

  // `memory` is in shared memory, at the end.
  TFGW_DEVICE SeveralStarts(const Starts& starts, StartsBlock& memory) : starts_(starts), memory_(memory) {}

  TFGW_DEVICE int items_per_pair() const { return int(starts_.items); }
  TFGW_DEVICE void begin() const {
    const u64* const from = reinterpret_cast<const u64*>(&starts_);
    u64* const to = reinterpret_cast<u64*>(&memory_.starts);
    for (int e = thread_in_block(); e < int(sizeof(Starts) / 8); e += threads_in_block()) to[e] = from[e];
  }
  TFGW_DEVICE void take(int item, int part) const {
    const int of_pair = item % items_per_pair();
    memory_.current[part] = {of_pair, start_at(starts_, of_pair), 0, 0};
  }

  template <int P>
  TFGW_DEVICE static i64 workspace_size(int rows) {
    return Workspace<P, false>::size(rows) + StartsMemory<P>::size(rows);
  }

  // Called by all warps of the team.
  template <class Kind>
  TFGW_DEVICE static void solve() {
    using Team = typename Kind::Team;
    constexpr int P = Kind::Tree::kColumns;
    const Problem& p = block_memory<P>().problem;
    const Frame& frame = block_memory<P>().frame[Team::kSingleWarp ? thread_in_block() / 32 : 0];
    CurrentStart& now = current_start<Kind>();
    if (Team::thread() == 0) {
      const StartedPair pair = started_pair(p, frame.graph, frame.b, frame.k);
      now.decision = is_superfluous(starts_block<Kind>().starts, pair, frame.alpha, now.item);
    }
    Team::sync();
    if (now.decision) return Team::sync();
    Team::sync();
    solve_start<Kind>();
  }

 private:
  const Starts& starts_;
  StartsBlock& memory_;
};

}  // namespace tfgw

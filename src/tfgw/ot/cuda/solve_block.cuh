// Scheduling: which warps solve which pairs.
#pragma once

#include "fgw.cuh"

namespace tfgw {

// Words per mask: a pair has up to 32, 64, 96, 128 or 160 arcs.
constexpr int kTiny = 1, kSmall = 2, kMedium = 3, kLarge = 4, kHuge = 5;

// Bytes of shared memory for each of `pairs` pairs that a block solves at a time.
template <int P>
TFGW_DEVICE int pair_shared(i64 bytes, int pairs) {
  return (int(bytes) - int(sizeof(BlockMemory<P>))) / pairs / 16 * 16;
}

// How many pairs of a graph of n nodes a block solves at a time. If several, each is solved by one warp.
TFGW_DEVICE int pairs_at_a_time(const Problem& p, int n) {
  return n <= p.for_four ? 4 : n <= p.for_three ? 3 : n <= p.for_two ? 2 : 1;
}

// Upper bound on the bytes of shared memory of a pair of the kind `Shared`, with `packed` entries of its structure.
template <int P, int kAtoms>
TFGW_DEVICE i64 shared_bytes(int n, int cols, int packed) {
  const auto tree = [](int bytes) { return bytes_of<char>(bytes); };
  const int arcs = n + cols - 1;
  SharedSize size;
  Workspace<P, true, kAtoms>(size, n, cols, packed);
  return size.bytes() + (arcs <= 32 * kSmall    ? tree(sizeof(typename Shared<P, kSmall, kBlockWarps>::Tree::Memory))
                         : arcs <= 32 * kMedium ? tree(sizeof(typename Shared<P, kMedium, kBlockWarps>::Tree::Memory))
                         : arcs <= 32 * kLarge  ? tree(sizeof(typename Shared<P, kLarge, kBlockWarps>::Tree::Memory))
                                                : tree(sizeof(typename Shared<P, kHuge, kBlockWarps>::Tree::Memory)));
}

// With several starts, the template's table and then the newest cross term are in global memory if there is no room for
// them: bytes of the table, and of a pair of up to 96 arcs without both.
template <int P>
TFGW_DEVICE i64 table_bytes(int cols) {
  return bytes_of<double>(i64(cols) * kPitch<P>);
}
template <int P, int kAtoms>
TFGW_DEVICE i64 least_bytes(int n, int cols) {
  SharedSize size;
  Workspace<P, true, kAtoms, false, false>(size, n, cols, 0);
  return size.bytes() + bytes_of<char>(i64(sizeof(typename Shared<P, kMedium, 1>::Tree::Memory)));
}

// If one small graph cannot be solved by a single warp, no graph of the batch is.
template <int P>
TFGW_DEVICE void check_small_graph(const Problem& p, int b) {
  if constexpr (P <= 32) {
    if (p.queue[kInvalid]) return;
    const GraphView graph = graph_view(p, b);
    const int n = graph.n, cols = int(p.columns), pairs = pairs_at_a_time(p, n);
    if (n == 0 || (n > p.for_small && pairs == 1)) return;
    const bool small = n <= p.for_small;
    const int room = small ? pair_shared<P>(p.small_shared, kBlockWarps) : pair_shared<P>(p.shared_size, pairs);
    const i64 bytes = small       ? shared_bytes<P, kSmallSharedAtoms>(n, cols, 0)
                      : p.several ? least_bytes<P, kStartsSharedAtoms>(n, cols)
                                  : shared_bytes<P, kSharedAtoms>(n, cols, 0);
    if (bytes > room || !graph.symmetric || p.dense) p.queue[kNoSingleWarps] = 1;
  }
}

// What a block does with an item of the queue: it solves a pair from one start. several_starts.cuh has the alternative.
struct OneStart {
  static constexpr bool kSpills = false;  // whether single warps may have the cross term and the table in global memory
  TFGW_DEVICE static int items_per_pair() { return 1; }
  TFGW_DEVICE static void begin() {}         // run by all threads of a block, before its first item
  TFGW_DEVICE static void take(int, int) {}  // announces the item of a part of the block's memory
  template <int P>
  TFGW_DEVICE static i64 workspace_size(int rows) {
    return Workspace<P, false>::size(rows);
  }
  template <class Kind>
  TFGW_DEVICE static void solve() {
    solve_pair<Kind>();
  }
};

// Blocks take pairs from the queue, largest first. Large pairs are solved by all warps of a block, smaller ones by one
// warp each, as many at a time as fit into shared memory.
template <int P, int kAtoms, class Work = OneStart>
class SolveBlock {
 public:
  TFGW_DEVICE SolveBlock(const Problem& p, i64 shared_size, const Work& work = {})
      : p_(p), memory_(block_memory<P>()), shared_size_(shared_size), templates_(int(p.templates)), work_(work) {}

  // Kernel `solve`: all pairs, or those before the small ones.
  TFGW_DEVICE void run() {
    if (!begin(workspace_size(p_.queue[kLargestGraph]))) return;
    end_ = p_.queue[kNoSingleWarps] ? pairs() : p_.queue[kFirstSmall];
    int item = 0;
    while (true) {
      if (thread_in_block() == 0) memory_.item = atomic_add(&p_.queue[kNextPair], 1);
      sync_block();
      item = memory_.item;
      sync_block();
      if (item >= end_) return;
      if (at_a_time(item) > 1) break;  // the same holds for all later items
      solve_with_block(item);
    }
    if constexpr (P <= 32) solve_with_warps_from(item);
  }

  // Kernel `solve_small`: the remaining pairs, one per warp.
  TFGW_DEVICE void run_small() {
    if (p_.queue[kNoSingleWarps] || !begin(kBlockWarps * workspace_size(int(p_.for_small)))) return;
    sync_block();
#pragma unroll 1
    while (true) {
      const int item = next_of_warp(kNextSmall);
      if (item >= pairs()) return;
      if (!has_nodes(item, thread_in_block() / 32, kBlockWarps, false)) continue;
      if (arcs(mine()) <= 32 * kTiny) solve<Shared<P, kTiny, 1, kAtoms>>();
      else solve<Shared<P, kSmall, 1, kAtoms>>();
    }
  }

 private:
  TFGW_DEVICE int items_per_graph() const { return templates_ * work_.items_per_pair(); }
  TFGW_DEVICE int pairs() const { return int(p_.graphs) * items_per_graph(); }
  TFGW_DEVICE static i64 workspace_size(int rows) { return Work::template workspace_size<P>(rows); }
  template <class Kind>
  TFGW_DEVICE static void solve() {
    Work::template solve<Kind>();
  }

  // Takes the block's part of the working memory, at least `least` doubles. False if there is none.
  TFGW_DEVICE bool begin(i64 least) {
    const i64 equal = p_.scratch_size / blocks_in_grid();
    room_ = equal / 2 * 2 < least ? least : equal / 2 * 2;
    if ((block_index() + 1) * room_ > p_.scratch_size) return false;
    // Noinline functions cannot read the kernel's parameter in place, so it is copied to shared memory.
    const u64* const from = reinterpret_cast<const u64*>(&p_);
    u64* const to = reinterpret_cast<u64*>(&memory_.problem);
    for (int e = thread_in_block(); e < int(sizeof(Problem) / 8); e += threads_in_block()) to[e] = from[e];
    work_.begin();
    return true;
  }

  // Pairs that the block solves at a time. Never decreases along the queue.
  TFGW_DEVICE int at_a_time(int item) const {
    if (P > 32 || item < p_.team_pairs || p_.queue[kNoSingleWarps]) return 1;
    const int b = p_.order[item / items_per_graph()], n = p_.ptr[b + 1] - p_.ptr[b];
    int pairs = pairs_at_a_time(p_, n);
    while (pairs > 1 && pairs * workspace_size(n) > room_) --pairs;
    return pairs;
  }

  TFGW_DEVICE void solve_with_block(int item) {
    const Frame frame = frame_of(item, 0, 1, false);
    if (frame.graph.n == 0) {
      if (thread_in_block() < 32) write_empty(p_, i64(frame.b) * templates_ + frame.k);
      return;
    }
    if (thread_in_block() == 0) memory_.frame[0] = frame, work_.take(item, 0);
    sync_block();
    if constexpr (P <= 32) {
      if (frame.in_shared) {
        if (arcs(frame) <= 32 * kSmall) return solve<Shared<P, kSmall, kBlockWarps, kAtoms>>();
        if (arcs(frame) <= 32 * kMedium) return solve<Shared<P, kMedium, kBlockWarps, kAtoms>>();
        if (arcs(frame) <= 32 * kLarge) return solve<Shared<P, kLarge, kBlockWarps, kAtoms>>();
        return solve<Shared<P, kHuge, kBlockWarps, kAtoms>>();
      }
    }
    solve<Global<P, kBlockWarps>>();
  }

  // Warp 0 starts with the given item. A warp whose next item allows more pairs at a time holds it until all others
  // have reached that point, because shared memory is then repartitioned.
  TFGW_DEVICE void solve_with_warps_from(int item) {
    const int warp = thread_in_block() / 32, first = at_a_time(item);
    bool has_item = warp == 0;
#pragma unroll 1
    for (int pairs = first; pairs <= kBlockWarps; ++pairs) {
#pragma unroll 1
      while (warp < pairs) {
        if (!has_item) item = next_of_warp(kNextPair);
        has_item = item >= end_ || at_a_time(item) != pairs;
        if (has_item) break;
        solve_with_warp(item, pairs);
      }
      sync_block();
    }
  }

  TFGW_DEVICE int next_of_warp(Counter counter) const {
    sync_warp();
    return shfl(lane() == 0 ? atomic_add(&p_.queue[counter], 1) : 0, 0);
  }

  TFGW_DEVICE void solve_with_warp(int item, int pairs) {
    if (!has_nodes(item, thread_in_block() / 32, pairs, Work::kSpills)) return;
    if constexpr (Work::kSpills) {
      if (!mine().has_cross) return solve<Shared<P, kMedium, 1, kAtoms, false, false>>();
      if (!mine().has_table) return solve<Shared<P, kSmall, 1, kAtoms, true, false>>();
    }
    // With few pairs, all sizes run at the same time, and more specialised code means more instruction cache misses.
    if (arcs(mine()) <= 32 * kTiny && end_ > kMany * blocks_in_grid()) return solve<Shared<P, kTiny, 1, kAtoms>>();
    if (arcs(mine()) <= 32 * kSmall) return solve<Shared<P, kSmall, 1, kAtoms>>();
    solve<Shared<P, kMedium, 1, kAtoms>>();
  }

  // Describes the warp's next pair in shared memory. Returns false, after writing the results, if the graph is empty.
  TFGW_DEVICE bool has_nodes(int item, int part, int parts, bool spills) {
    const Frame frame = frame_of(item, part, parts, spills);
    if (frame.graph.n == 0) {
      write_empty(p_, i64(frame.b) * templates_ + frame.k);
      return false;
    }
    if (lane() == 0) memory_.frame[part] = frame, work_.take(item, part);
    sync_warp();
    return true;
  }
  TFGW_DEVICE const Frame& mine() const { return memory_.frame[thread_in_block() / 32]; }
  TFGW_DEVICE static int arcs(const Frame& frame) { return frame.graph.n + frame.cols - 1; }

  // Description of a pair that gets one of several equal parts of the block's memory. `spills` tells whether its newest
  // cross term and the template's table may be in global memory.
  TFGW_DEVICE Frame frame_of(int item, int part, int parts, bool spills) const {
    Frame f;
    f.b = p_.order[item / items_per_graph()], f.k = item / work_.items_per_pair() % templates_;
    f.graph = graph_view(p_, f.b);
    if (is_skipped(p_, f.b, f.k)) f.graph.n = 0;
    f.cols = p_.live_count[f.k];
    f.alpha = has_structure(p_) ? p_.alpha[f.k] : 0.0;
    f.structure_scale = f.alpha > 0 && f.graph.n > 0 ? f.alpha * (p_.constant[f.b] + p_.t_constant[f.k]) : 0.0;
    f.rows_at_once = priced_rows(f.cols);
    f.shared_size = pair_shared<P>(shared_size_, parts);
    f.shared_at = int(sizeof(BlockMemory<P>)) + part * f.shared_size;
    f.global = reinterpret_cast<char*>(p_.scratch + block_index() * room_ + part * (room_ / parts / 2 * 2));
    f.linear = initial_state_of(p_, f.graph, f.b, f.k).linear;
    f.in_shared = false, f.has_cross = f.has_table = true, f.packed = 0;
    if constexpr (P <= 32) {
      // If not all fits, the template's table leaves shared memory first, because it is read once per iteration, then the
      // graph's entries and the newest cross term. To save code, pairs of more than 64 arcs lose the latter at once.
      f.packed = f.graph.n ? packed_entries<P>(p_, f.graph, f.b) : 0;
      i64 bytes = shared_bytes<P, kAtoms>(f.graph.n, f.cols, 0);
      const auto fits = [&] { return bytes + bytes_of<Entry>(f.packed) <= f.shared_size; };
      f.has_table = !spills || fits();
      if (!f.has_table) bytes -= table_bytes<P>(f.cols);
      f.has_cross = f.has_table || (arcs(f) <= 32 * kSmall && bytes <= f.shared_size);
      if (!f.has_cross) bytes = least_bytes<P, kAtoms>(f.graph.n, f.cols);
      if (!fits()) f.packed = 0;
      f.in_shared = f.graph.symmetric && !p_.dense && f.graph.n + f.cols - 1 <= 32 * kHuge && bytes <= f.shared_size;
    }
    return f;
  }

  const Problem& p_;  // the kernel's parameter
  BlockMemory<P>& memory_;
  const i64 shared_size_;
  const int templates_;
  const Work work_;
  int end_ = 0;   // end of the queue's items
  i64 room_ = 0;  // available working memory in doubles
};

}  // namespace tfgw

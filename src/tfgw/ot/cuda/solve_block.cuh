// Which warps solve which pairs.
#pragma once

#include "fgw.cuh"

namespace tfgw {

constexpr int kSmall = 2, kMedium = 3, kLarge = 5;  // words of masks, that is, up to 64, 96 and 160 nodes of a pair

template <int P>
TFGW_DEVICE int packed_entries(const Problem& p, const GraphView& graph, int b) {
  const bool packed = graph.sparse && graph.symmetric && !graph.dense;
  return packed ? packed_begin(p, b)[(graph.n + Shape<P>::kGroup - 1) / Shape<P>::kGroup] : 0;
}

// Bytes of shared memory for the pairs of a block, and for one that a warp solves on its own.
template <int P>
TFGW_DEVICE int block_shared(const Problem& p) {
  return int(p.shared_size) - int(sizeof(BlockMemory<P>));
}
template <int P>
TFGW_DEVICE int warp_shared(const Problem& p) {
  return block_shared<P>(p) / kBlockWarps / 16 * 16;
}

// Whether a prepared graph is small, but cannot be solved by one warp: then none is.
template <int P>
TFGW_DEVICE void check_small_graph(const Problem& p, int b) {
  if constexpr (P <= 32) {
    if (p.queue[kInvalid]) return;
    const GraphView graph = graph_view(p, b);
    if (graph.n == 0 || graph.n > p.small_graph) return;
    using Alone = Pair<Near<P, kSmall, 1>>;
    const int packed = packed_entries<P>(p, graph, b);
    const bool has_room = Alone::has_room(graph, int(p.columns), packed, warp_shared<P>(p), nullptr);
    if (!has_room || !graph.symmetric || p.dense) p.queue[kNoneAlone] = 1;
  }
}

// Blocks take pairs from the queue, largest first. Large pairs are solved by all warps of a block together, small ones
// by each warp on its own.
template <int P>
class SolveBlock {
 public:
  TFGW_DEVICE explicit SolveBlock(const Problem& p)
      : p_(p), memory_(block_memory<P>()), pairs_(int(p.graphs * p.templates)) {}

  TFGW_DEVICE void run() {
    if (!find_memory()) return;
    // Functions cannot read a kernel's parameter where it is.
    const u64* const from = reinterpret_cast<const u64*>(&p_);
    u64* const to = reinterpret_cast<u64*>(&memory_.problem);
    for (int e = thread_in_block(); e < int(sizeof(Problem) / 8); e += threads_in_block()) to[e] = from[e];
    int item = 0;
    while (true) {
      if (thread_in_block() == 0) memory_.item = next();
      sync_block();
      item = memory_.item;
      sync_block();
      if (item >= pairs_) return;
      if (is_small(item)) break;  // and so are all that come after it
      solve_together(item);
    }
    if constexpr (P <= 32) {
      if (thread_in_block() >= 32) item = next_of_warp();
      for (; item < pairs_; item = next_of_warp()) solve_alone(item);
    }
  }

 private:
  // The block's part of the working memory. False if there is none.
  TFGW_DEVICE bool find_memory() {
    const i64 least = Workspace<P, false>::size(p_.queue[kLargestGraph]), equal = p_.scratch_size / blocks_in_grid();
    room_ = equal / 2 * 2 < least ? least : equal / 2 * 2;
    return (block_index() + 1) * room_ <= p_.scratch_size;
  }

  TFGW_DEVICE int next() const { return fetch_add(&p_.queue[kNextPair], 1); }
  TFGW_DEVICE int next_of_warp() const {
    sync();
    return from_lane(lane() == 0 ? next() : 0, 0);
  }

  TFGW_DEVICE bool is_small(int item) const {
    const int b = p_.order[item / p_.templates], n = p_.ptr[b + 1] - p_.ptr[b];
    return P <= 32 && n <= p_.small_graph && !p_.queue[kNoneAlone] &&
           Workspace<P, false>::size(n) <= room_ / kBlockWarps;
  }

  TFGW_DEVICE void solve_together(int item) {
    const Frame frame = frame_of(item, 0, block_shared<P>(p_), 0);
    if (frame.graph.n == 0) {
      if (thread_in_block() < 32) write_empty(p_, i64(frame.b) * p_.templates + frame.k);
      return;
    }
    if constexpr (P <= 32) {
      using Small = Near<P, kSmall, kBlockWarps>;
      using Medium = Near<P, kMedium, kBlockWarps>;
      using Large = Near<P, kLarge, kBlockWarps>;
      if (frame.graph.symmetric && !p_.dense) {
        if (solve_near<Small>(frame) || solve_near<Medium>(frame) || solve_near<Large>(frame)) return;
      }
    }
    if (thread_in_block() == 0) memory_.frame[0] = frame;
    sync_block();
    solve_pair<Far<P, kBlockWarps>>();
  }

  // False if there is no room for it.
  template <class Kind>
  TFGW_DEVICE bool solve_near(const Frame& frame) {
    if (!Pair<Kind>::has_room(frame.graph, frame.cols, frame.packed, frame.shared_size, nullptr)) return false;
    if (Kind::Team::thread() == 0) {
      const int leader = Pair<Kind>::leader();
      memory_.frame[leader] = frame;
      Pair<Kind>::has_room(frame.graph, frame.cols, frame.packed, frame.shared_size, memory_.places[leader]);
    }
    Kind::Team::meet();
    solve_pair<Kind>();
    return true;
  }

  TFGW_DEVICE void solve_alone(int item) {
    const int size = warp_shared<P>(p_), warp = thread_in_block() / 32;
    const Frame frame = frame_of(item, warp * size, size, warp * (room_ / kBlockWarps / 2 * 2));
    if (frame.graph.n == 0) return write_empty(p_, i64(frame.b) * p_.templates + frame.k);
    solve_near<Near<P, kSmall, 1>>(frame);  // there is room: prepare has looked
  }

  TFGW_DEVICE Frame frame_of(int item, int shared_at, int shared_size, i64 scratch_at) const {
    const int b = p_.order[item / p_.templates], k = int(item % p_.templates);
    const GraphView graph = graph_view(p_, b);
    const int cols = p_.live_count[k], packed = graph.n ? packed_entries<P>(p_, graph, b) : 0;
    const double alpha = has_structure(p_) ? p_.alpha[k] : 0.0;
    char* const global = reinterpret_cast<char*>(p_.scratch + block_index() * room_ + scratch_at);
    shared_at += int(sizeof(BlockMemory<P>));
    return {b, k, cols, packed, alpha, graph, priced_rows(cols), shared_at, shared_size, global};
  }

  const Problem& p_;  // the kernel's parameter
  BlockMemory<P>& memory_;
  const int pairs_;
  i64 room_ = 0;  // in doubles
};

}  // namespace tfgw

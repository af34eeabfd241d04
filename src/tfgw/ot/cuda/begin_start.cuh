// Kernel `starts_begin`: for each start of a wave the cost of its first linear problem, and a basis for it. One warp each
// or, for large graphs, all warps of a block.
#pragma once

#include "anchored.cuh"
#include "perturbed.cuh"

namespace tfgw {

// Run by all warps of the team.
template <int P, class Team>
class StartBeginner {
 public:
  TFGW_DEVICE StartBeginner(const Problem& p, const Starts& starts, const BeginPair<P>& pair, int item,
                            const BeginMemory<P>& memory)
      : p_(p), starts_(starts), pair_(pair), at_(memory), started_(started_pair(p, pair.graph, pair.b, pair.k)),
        item_(item), s_(start_at(starts, item)), n_(pair.n), m_(pair.m),
        kinds_(starts.anchored && pair.alpha > 0 ? starts.pair_kinds[started_.index] : int(starts.kinds)) {}

  TFGW_DEVICE void run() const {
    if (starts_.wave < 0 && item_ == 0 && Team::thread() == 0)
      starts_.best[started_.index] = {0, -1, int(starts_.count), 0, 0};
    if (starts_.wave >= 0 || item_ == 0 || pair_.alpha > 0) {
      if (starts_.wave >= 0 && is_superfluous(starts_, started_, pair_.alpha, item_)) return;
      begin();
    }
  }

 private:
  TFGW_DEVICE void begin() const {
    const StartKind kind = kind_of(p_, pair_.alpha, kinds_, s_);
    if (Team::thread() == 0) *kind_at(starts_, started_, item_) = kind;
    if (s_ == 0 && (kind == kGiven || kind == kUniform)) return copy_first();
    if (starts_.wave == 0) {
      if (Team::warp() == 0) recall_minima();
      Team::sync();
    }
    FirstBasis<P, Team> first(n_, m_, at_.first);
    for (int i = Team::thread(); i < n_; i += Team::kThreads) at_.first.supply[i] = p_.supply[pair_.graph.first + i];
    write_cost(kind, cost_of(p_, starts_, started_, item_));
    Team::sync();
    first.compute_regrets(at_.cost);
    Team::sync();
    first.order_rows();
    Team::sync();
    if (Team::warp() == 0) first.ship(p_.demand + i64(pair_.k) * P, arcs_of(p_, starts_, started_, item_));
  }

  // The start that a solve from a single start has, which the kernel `start` has begun.
  TFGW_DEVICE void copy_first() const {
    const InitialState first = initial_state_of(p_, pair_.graph, pair_.b, pair_.k);
    double* const cost = cost_of(p_, starts_, started_, item_);
    Arc* const arcs = arcs_of(p_, starts_, started_, item_);
    unrolled<4>(2 * Team::thread(), n_ * P, 2 * Team::kThreads, [&](int e) { return *as_double2(first.gradient + e); },
                [&](int e, const Double2& v) { *as_double2(cost + e) = v; });
    unrolled<2>(Team::thread(), n_ + m_ - 1, Team::kThreads, [&](int e) { return first.arcs[e]; },
                [&](int e, const Arc& v) { arcs[e] = v; });
  }

  // Number of starts before this one that pinned a link.
  TFGW_DEVICE int anchored_before() const {
    int count = 0;
#pragma unroll 1
    for (int s = 0; s < s_; ++s) count += kind_of(p_, pair_.alpha, kinds_, s) == kAnchored;
    return count;
  }

  // Writes the cost to global memory, and to the working memory.
  TFGW_DEVICE void write_cost(StartKind kind, double* cost) const {
    if (kind == kAnchored)
      return AnchoredCost<P, Team>(starts_, pair_, started_.index)
          .each_entry(anchored_before(), at_.samples + 32 * Team::warp(),
                      [&](int e, double v) { cost[e] = at_.cost[e] = v; });
    const bool tied = kind == kUniform && pair_.alpha > 0, noisy = tied && s_ > 0;
    const double* from =
        tied ? starts_.tied + started_.first_row * P : initial_state_of(p_, pair_.graph, pair_.b, pair_.k).gradient;
    if (noisy || kind == kPerturbed) {
      if (Team::warp() == 0) write_random_cost(kind, from, cost);
      from = cost;
      Team::sync();
    }
    each_entry<P, Team>(n_, [&](int e, int, int) { cost[e] = at_.cost[e] = from[e]; });
  }

  // Run by one warp.
  TFGW_DEVICE void write_random_cost(StartKind kind, const double* from, double* cost) const {
    const PerturbedCost<P> perturbed(pair_, at_, s_);
    if (kind != kPerturbed) return perturbed.add_noise(from, kTieShare * largest_gradient(), cost);
    const int round = round_of(starts_, s_);
    perturbed.write(lowest_of(p_, starts_, started_, round), minima_of(p_, starts_, started_, round), cost);
  }

  // At hh̄ᵀ, by one warp.
  TFGW_DEVICE double largest_gradient() const {
    double largest = 0;
    each_entry<P, tfgw::Team<1>>(n_, [&](int, int i, int k) {
      const ProductCross<P> cross(p_, pair_.graph, pair_.k, k);
      if (k < m_) largest = larger(largest, magnitude(pair_.product_gradient(cross, i, k)));
    });
    return warp_max(largest);
  }

  // The minima of the round's fresh starts. Run by one warp.
  TFGW_DEVICE void recall_minima() const {
    const int round = round_of(starts_, s_), first = round * kStartsPerRound;
    const i64 size = i64(n_) * P;
    LowestValues& lowest = lowest_of(p_, starts_, started_, round);
    double* const gradients = minima_of(p_, starts_, started_, round);
    if (lane() == 0) lowest.count = 0;
#pragma unroll 1
    for (int fresh = 0; first + fresh < s_; ++fresh) {
      int slot = 0;
      if (lane() == 0) slot = lowest.add(starts_.value[started_.index * starts_.count + first + fresh]);
      slot = shfl(slot, 0);
      if (slot >= 0 && slot != fresh)  // after a minimum that was known
        for (i64 e = lane(); e < size; e += 32) gradients[slot * size + e] = gradients[fresh * size + e];
      sync_warp();
    }
  }

  const Problem& p_;
  const Starts& starts_;
  const BeginPair<P>& pair_;
  const BeginMemory<P>& at_;
  const StartedPair started_;
  const int item_, s_, n_, m_, kinds_;
};

// Blocks take turns, largest graphs first. In a turn, each warp of a block begins a start. If a graph is too large for a
// warp's part of shared memory, all warps begin a single start together.
template <int P>
class BeginBlock {
 public:
  TFGW_DEVICE BeginBlock(const Problem& p, const Starts& starts)
      : p_(p), starts_(starts), each_(BeginMemory<P>::size(p.queue[kLargestGraph])),
        part_(int(starts.begin_shared) / kBeginWarps / 16 * 16) {}

  TFGW_DEVICE void run() const {
    const i64 room = p_.scratch_size / (kBeginWarps * each_);
    const int blocks = room < blocks_in_grid() ? int(room) : blocks_in_grid(), warp = thread_in_block() / 32;
    if (block_index() >= blocks) return;
    const i64 per_graph = p_.templates * starts_.items, items = p_.graphs * per_graph;
    const i64 large = large_graphs() * per_graph, turns = large + (items - large + kBeginWarps - 1) / kBeginWarps;
#pragma unroll 1
    for (i64 turn = block_index(); turn < turns; turn += blocks) {
      if (turn < large) {
        begin<Team<kBeginWarps>>(turn, 0, int(starts_.begin_shared));
        sync_block();
      } else {
        const i64 item = large + (turn - large) * kBeginWarps + warp;
        if (item < items) begin<Team<1>>(item, warp, part_);
      }
    }
  }

 private:
  TFGW_DEVICE int graph_of(i64 item) const { return p_.order[item / (p_.templates * starts_.items)]; }

  // Number of graphs that are too large for a warp's part of shared memory: the first ones in the order. Run by a warp.
  TFGW_DEVICE int large_graphs() const {
    int low = 0, high = int(p_.graphs);
#pragma unroll 1
    while (low < high) {
      const int step = (high - low + 31) / 32, at = low + lane() * step, b = at < high ? p_.order[at] : 0;
      const bool large = at < high && BeginMemory<P>::shared_bytes(p_.ptr[b + 1] - p_.ptr[b]) > part_;
      const int count = popc(ballot(large));
      if (count == 0) return low;
      const int next = low + count * step;
      low += (count - 1) * step + 1;
      high = next < high ? next : high;
    }
    return low;
  }

  // The team works in this part of the block's memory, which has `bytes` bytes of shared memory.
  template <class Team>
  TFGW_DEVICE void begin(i64 item, int part, int bytes) const {
    const int b = graph_of(item), k = int(item / starts_.items % p_.templates);
    const GraphView graph = graph_view(p_, b);
    if (graph.n == 0 || is_skipped(p_, b, k)) return;
    const BeginPair<P> pair(p_, graph, b, k);
    char* const global = reinterpret_cast<char*>(p_.scratch + (i64(block_index()) * kBeginWarps + part) * each_);
    const BeginMemory<P> memory(SpillArena(dynamic_shared_memory() + part * bytes, bytes, global), graph.n, Team::kSize);
    StartBeginner<P, Team>(p_, starts_, pair, int(item % starts_.items), memory).run();
    Team::sync();
  }

  const Problem& p_;
  const Starts& starts_;
  const i64 each_;  // doubles of working memory per warp
  const int part_;  // bytes of shared memory per warp
};

// Fills the queue of a wave from the queue `from` of a single start, before any block takes an item.
TFGW_DEVICE void reset_queue(const int* from, i64 items, int* to) {
  const int counter = thread_in_block();
  if (counter >= kCounters) return;
  const bool counts_items = counter == kFirstSmall || counter == kNextSmall;
  const bool is_next = counter == kNextPair || counter == kNextStart;
  to[counter] = is_next ? 0 : int((counts_items ? items : 1) * from[counter]);
}

}  // namespace tfgw

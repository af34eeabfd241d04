// Kernel `starts_begin`: for each start of a wave the cost of its first linear problem, and a basis for it. One warp each.
#pragma once

#include "anchored.cuh"
#include "perturbed.cuh"

namespace tfgw {

template <int P>
class StartBeginner {
 public:
  // `walks` has room for `room` values.
  TFGW_DEVICE StartBeginner(const Problem& p, const Starts& starts, const BeginPair<P>& pair, int item, Double2* walks,
                            int room)
      : p_(p), starts_(starts), pair_(pair), started_(started_pair(p, pair.graph, pair.b, pair.k)), item_(item),
        s_(start_at(starts, item)), n_(pair.n), m_(pair.m),
        walks_(2 * n_ <= room && 2 * P <= room ? walks : pair.at.walks) {}

  TFGW_DEVICE void run() {
    if (starts_.wave < 0 && item_ == 0 && lane() == 0) starts_.best[started_.index] = {0, -1, int(starts_.count), 0, 0};
    sync_warp();
    if (starts_.wave >= 0 || item_ == 0 || pair_.alpha > 0) {
      if (starts_.wave >= 0 && is_superfluous(starts_, started_, pair_.alpha, item_)) return;
      begin();
    }
  }

 private:
  TFGW_DEVICE void begin() {
    double* const cost = cost_of(p_, starts_, started_, item_);
    const StartKind kind = choose_kind();
    if (lane() == 0) *kind_at(starts_, started_, item_) = kind;
    if (starts_.wave == 0) recall_minima();
    write_cost(kind, cost);
    sync_warp();
    FirstBasis<P, Team<1>> first(n_, m_, pair_.at.first);
    for (int i = lane(); i < n_; i += 32) pair_.at.first.supply[i] = p_.supply[pair_.graph.first + i];
    first.compute_regrets(cost);
    sync_warp();
    first.order_rows();
    sync_warp();
    first.ship(p_.demand + i64(pair_.k) * P, arcs_of(p_, starts_, started_, item_));
  }

  // The gradient at hh̄ᵀ.
  TFGW_DEVICE double product_gradient(int i, int k) const {
    return pair_.linear[i * P + k] + -4 * pair_.alpha * ProductCross<P>(p_, pair_.graph, pair_.k, k).at(i);
  }
  TFGW_DEVICE double largest_gradient() const {
    double largest = 0;
    pair_.each_entry([&](int, int i, int k) {
      if (k < m_) largest = larger(largest, magnitude(product_gradient(i, k)));
    });
    return warp_max(largest);
  }

  // Whether the gradient at hh̄ᵀ is the same for all couplings, that is, a row term plus a column term. This is the case
  // for regular graphs without features.
  TFGW_DEVICE bool product_says_nothing() const {
    const double corner = product_gradient(0, 0);
    double difference = 0;
    pair_.each_entry([&](int, int i, int k) {
      if (k >= m_) return;
      const double left = product_gradient(i, 0), above = product_gradient(0, k);
      difference = larger(difference, magnitude(product_gradient(i, k) - left - above + corner));
    });
    return warp_max(difference) <= kFlat * largest_gradient();
  }

  TFGW_DEVICE StartKind choose_kind() {
    kinds_ = int(starts_.kinds);
    if (pair_.alpha > 0 && may_skip_product(int(starts_.count), kinds_) && product_says_nothing()) kinds_ -= kUniform;
    return kind_of(s_);
  }
  TFGW_DEVICE StartKind kind_of(int s) const {
    if (s == 0 && p_.start) return kGiven;
    return pair_.alpha > 0 ? kind_of_start(s, kinds_) : kUniform;
  }
  // Number of starts before this one that pinned a link.
  TFGW_DEVICE int anchored_before() const {
    int count = 0;
#pragma unroll 1
    for (int s = 0; s < s_; ++s) count += kind_of(s) == kAnchored;
    return count;
  }

  TFGW_DEVICE void write_cost(StartKind kind, double* cost) const {
    const PerturbedCost<P> perturbed(pair_, s_);
    if (kind == kAnchored) {
      AnchoredCost<P>(pair_, walks_).write(anchored_before(), cost);
    } else if (kind == kPerturbed) {
      const int round = round_of(starts_, s_);
      perturbed.write(lowest_of(p_, starts_, started_, round), minima_of(p_, starts_, started_, round), cost);
    } else {
      const bool tied = kind == kUniform && pair_.alpha > 0;
      const double* const given = initial_state_of(p_, pair_.graph, pair_.b, pair_.k).gradient;
      const double* const from = tied ? starts_.tied + started_.first_row * P : given;
      if (tied && s_ > 0) perturbed.add_noise(from, kTieShare * largest_gradient(), cost);
      else pair_.each_entry([&](int e, int, int) { cost[e] = from[e]; });
    }
  }

  // The minima of the round's fresh starts.
  TFGW_DEVICE void recall_minima() const {
    const int round = round_of(starts_, s_), first = round * kRound;
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
  const StartedPair started_;
  const int item_, s_, n_, m_;
  Double2* const walks_;
  int kinds_ = 0;
};

constexpr int kWalkRoom = 160;  // values of a warp's walks in shared memory

// Every warp begins every so many-th start of the wave, largest graphs first.
template <int P>
TFGW_DEVICE void begin_starts(const Problem& p, const Starts& starts) {
  TFGW_SHARED Double2 walks[kBeginThreads / 32][kWalkRoom];
  const int warps = blocks_in_grid() * (threads_in_block() / 32), in_block = thread_in_block() / 32;
  const int warp = block_index() * (threads_in_block() / 32) + in_block;
  const i64 each = BeginMemory<P>::size(p.queue[kLargestGraph]), room = p.scratch_size / each;
  const int active = room < warps ? int(room) : warps;
  if (warp >= active) return;
  const i64 per_graph = p.templates * starts.items;
  char* const memory = reinterpret_cast<char*>(p.scratch + warp * each);
#pragma unroll 1
  for (i64 item = warp; item < p.graphs * per_graph; item += active) {
    const int b = p.order[item / per_graph], k = int(item / starts.items % p.templates);
    const GraphView graph = graph_view(p, b);
    if (graph.n > 0) {
      const BeginPair<P> pair(p, graph, b, k, memory);
      StartBeginner<P>(p, starts, pair, int(item % starts.items), walks[in_block], kWalkRoom).run();
    }
    sync_warp();
  }
}

// The queue of a wave: that of a single start, used up so far by no block.
TFGW_DEVICE void reset_queue(const int* from, i64 items, int* to) {
  const int counter = thread_in_block();
  if (counter >= kCounters) return;
  const bool counts_items = counter == kFirstSmall || counter == kNextSmall;
  const bool is_next = counter == kNextPair || counter == kNextStart;
  to[counter] = is_next ? 0 : int((counts_items ? items : 1) * from[counter]);
}

}  // namespace tfgw

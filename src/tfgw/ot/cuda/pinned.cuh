// Kernel `starts_pin`: which nodes the anchored starts of each pair pin, as in cpp/starts.cpp, which explains them. One
// block per pair, whose warps share the rows of the gradient, and then the starts.
#pragma once

#include "begin_memory.cuh"
#include "block.cuh"

namespace tfgw {

// Index in [0, count) of the element at `rank` when all are sorted by `key`; ties by index. Run by one warp.
template <class Key>
TFGW_DEVICE int at_rank(int count, int rank, Key key) {
  u64 last = 0;
  int found = -1;
#pragma unroll 1
  for (int r = 0; r <= rank; ++r) {
    u64 least = ~u64(0);
    int mine = count;
#pragma unroll 1
    for (int i = lane(); i < count; i += 32) {
      const u64 v = sortable(key(i));
      const bool after = r == 0 || v > last || (v == last && i > found);
      if (after && (v < least || (v == least && i < mine))) least = v, mine = i;
    }
    last = warp_min(least);
    found = int(warp_min(least == last ? u32(mine) : ~0u));
  }
  return found;
}

// The links of a template, strongest first.
template <int P>
class TemplateLinks {
 public:
  // `strengths` is shared memory for P numbers.
  TFGW_DEVICE TemplateLinks(const Problem& p, int k, double* strengths)
      : mean_(p.mean + i64(k) * P * P), t_h_(p.t_h + i64(k) * P), m_(p.live_count[k]), strengths_(strengths) {}

  // Before `at`, with a barrier in between. Each of the threads does its share.
  TFGW_DEVICE void compute_strengths(int thread, int threads) const {
#pragma unroll 1
    for (int a = thread; a < m_; a += threads)
      strengths_[a] = sum_unrolled(0, m_, [&](int b) { return strength(a, b) * read_only(t_h_ + b); });
  }

  // Run by one warp.
  TFGW_DEVICE PinnedNodes at(const Pin& pin) const {
    const int from = at_rank(m_, pin.template_rank % m_, [&](int a) { return -strengths_[a]; });
    const int to = at_rank(m_, pin.link < m_ - 1 ? pin.link : m_ - 1, [&](int b) { return -strength(from, b); });
    return {from, strength(from, to) > 0 ? to : -1};
  }

 private:
  TFGW_DEVICE double strength(int a, int b) const { return a == b ? 0.0 : magnitude(read_only(mean_ + b * P + a)); }

  const double *const mean_, *const t_h_;
  const int m_;
  double* const strengths_;  // of each node's links together
};

// Records that the anchored starts of a pair from number `first` on pin no node. Run by one warp.
TFGW_DEVICE void pin_nothing(const Starts& starts, i64 pair, int first) {
  for (int at = first + lane(); at < int(starts.anchored); at += 32)
    starts.pinned[pair * starts.anchored + at] = {-1, -1};
}

template <int P>
struct PinMemory {
  double strengths[P];
  double largest[kBeginWarps][3];  // of each warp's rows
};

template <int P>
class PinChooser {
  using Team = tfgw::Team<kBeginWarps>;

 public:
  TFGW_DEVICE PinChooser(const Problem& p, const Starts& starts, const BeginPair<P>& pair, PinMemory<P>& memory)
      : p_(p), starts_(starts), pair_(pair), index_(started_pair(p, pair.graph, pair.b, pair.k).index),
        memory_(memory) {}

  TFGW_DEVICE void run() const {
    int count = 0;
    if (pair_.alpha > 0) {
      const TemplateLinks<P> links(p_, pair_.k, memory_.strengths);
      links.compute_strengths(Team::thread(), Team::kThreads);
      const Flatness product = flatness_of_product();
      const bool skips = may_skip_product(int(starts_.count), int(starts_.kinds)) && product.is_flat;
      const int kinds = int(starts_.kinds) - (skips ? kUniform : 0);
      if (Team::thread() == 0) starts_.pair_kinds[index_] = kinds;
      if (Team::thread() == 0) starts_.scale[index_] = walk_scale(pair_.alpha, product.largest_linear);
      count = choose(links, kinds);
    }
    if (Team::warp() == 0) pin_nothing(starts_, index_, count);
  }

 private:
  struct Flatness {
    bool is_flat;
    double largest_linear;
  };

  TFGW_DEVICE PinnedNodes* pinned() const { return starts_.pinned + index_ * starts_.anchored; }

  // Whether the gradient at hh̄ᵀ is the same for all couplings, that is, a row term plus a column term: the case for
  // regular graphs without features. Also finds the largest linear cost. With barriers.
  TFGW_DEVICE Flatness flatness_of_product() const {
    const int n = pair_.n, m = pair_.m;
    const ProductCross<P> first(p_, pair_.graph, pair_.k, 0);
    const double corner = pair_.product_gradient(first, 0, 0);
    double difference = 0, largest = 0, linear = 0;
    each_own_column<P, Team>([&](int k, int top, int step) {
      if (k >= m) return;
      const ProductCross<P> mine(p_, pair_.graph, pair_.k, k);
      const double above = pair_.product_gradient(mine, 0, k);
#pragma unroll 2
      for (int i = top; i < n; i += step) {
        const double here = pair_.product_gradient(mine, i, k), left = pair_.product_gradient(first, i, 0);
        difference = larger(difference, magnitude(here - left - above + corner));
        largest = larger(largest, magnitude(here));
        linear = larger(linear, magnitude(pair_.linear[i * P + k]));
      }
    });
    sync_warp();
    difference = warp_max(difference), largest = warp_max(largest), linear = warp_max(linear);
    double* const mine = memory_.largest[Team::warp()];
    if (lane() == 0) mine[0] = difference, mine[1] = largest, mine[2] = linear;
    Team::sync();
#pragma unroll
    for (int w = 0; w < Team::kSize; ++w) {
      const double* const other = memory_.largest[w];
      difference = larger(difference, other[0]), largest = larger(largest, other[1]), linear = larger(linear, other[2]);
    }
    return {difference <= kFlatGradient * largest, linear};
  }

  // Each warp chooses for some of the starts. Returns the number of anchored starts.
  TFGW_DEVICE int choose(const TemplateLinks<P>& links, int kinds) const {
    const int n = pair_.n;
    int count = 0, before = -1, rank = -1, from = -1;  // of the warp's last start: the template's node and the graph's
#pragma unroll 1
    for (int item = 0; item < int(starts_.items); ++item) {
      if (kind_of(p_, pair_.alpha, kinds, start_at(starts_, item)) != kAnchored) continue;
      if (count++ % Team::kSize != Team::warp()) continue;
      const Pin now = pin(count - 1);
      const PinnedNodes there = links.at(now);
      if (there.from != before || now.graph_rank != rank)
        from = at_rank(n, now.graph_rank % n, [&](int i) { return mismatch(i, there.from); });
      before = there.from, rank = now.graph_rank;
      const int to = there.to < 0 ? -1 : best_neighbour(from, there.to);
      if (lane() == 0) pinned()[count - 1] = {from, to};
    }
    return count;
  }

  TFGW_DEVICE double mismatch(int i, int k) const {
    const int node = pair_.graph.first + i;
    const i64 other = i64(pair_.k) * P + k;
    return node_mismatch(pair_.linear[i * P + k], pair_.alpha, p_.out_mean[node] + p_.in_mean[node],
                         p_.t_mean_out[other] + p_.t_mean_in[other]);
  }

  // The neighbour of a node that matches a template node best, or −1.
  TFGW_DEVICE int best_neighbour(int node, int template_node) const {
    u64 least = ~u64(0);
    int mine = pair_.n;
#pragma unroll 1
    for (int way = 0; way < (pair_.graph.symmetric ? 1 : 2); ++way)
      pair_.neighbours.each(node, way == 1, lane(), 32, [&](int j, double c) {
        if (c == 0 || j == node) return;
        const u64 v = sortable(mismatch(j, template_node));
        if (v < least || (v == least && j < mine)) least = v, mine = j;
      });
    const u64 lowest = warp_min(least);
    const int found = int(warp_min(least == lowest ? u32(mine) : ~0u));
    return found < pair_.n ? found : -1;
  }

  const Problem& p_;
  const Starts& starts_;
  const BeginPair<P>& pair_;
  const i64 index_;
  PinMemory<P>& memory_;
};

template <int P>
TFGW_DEVICE void pin_starts(const Problem& p, const Starts& starts) {
  TFGW_SHARED PinMemory<P> memory;
#pragma unroll 1
  for (i64 item = block_index(); item < p.graphs * p.templates; item += blocks_in_grid()) {
    const int b = p.order[item / p.templates], k = int(item % p.templates);
    const GraphView graph = graph_view(p, b);
    if (graph.n > 0 && !is_skipped(p, b, k)) PinChooser<P>(p, starts, BeginPair<P>(p, graph, b, k), memory).run();
    else if (thread_in_block() < 32) pin_nothing(starts, started_pair(p, graph, b, k).index, 0);
    sync_block();
  }
}

}  // namespace tfgw

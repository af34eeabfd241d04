// Starts that pin a link of the graph to a link of the template: the counterpart of cpp/starts.cpp, which explains them.
#pragma once

#include "begin_memory.cuh"

namespace tfgw {

// Run by one warp.
template <int P>
class AnchoredCost {
 public:
  TFGW_DEVICE explicit AnchoredCost(const BeginPair<P>& pair, Double2* walks)
      : pair_(pair), walks_(walks), n_(pair.n), m_(pair.m) {}

  // Writes the cost of anchored start number `index`.
  TFGW_DEVICE void write(int index, double* cost) const {
    const PinnedLinks links = choose_links(pin(index));
    const bool both = links.template_to >= 0 && links.graph_to >= 0;
    walk_on_graph(links.graph_from, both ? links.graph_to : -1);
    walk_on_template(links.template_from, both ? links.template_to : -1);
    double largest = 0;
    pair_.each_entry([&](int e, int, int k) {
      if (k < m_) largest = larger(largest, magnitude(pair_.linear[e]));
    });
    const double scale = walk_scale(pair_.alpha, warp_max(largest));
    sync_warp();
    pair_.each_entry([&](int e, int i, int k) {
      double sum = 0;
#pragma unroll 4
      for (int s = 0; s < kLooks; ++s) {
        const Double2 here = pair_.at.graph_looks[s * n_ + i], there = pair_.at.template_looks[s * P + k];
        const double first = here.x - there.x, second = here.y - there.y;
        sum += first * first + second * second;
      }
      cost[e] = k < m_ ? pair_.linear[e] + scale * sum : kPadCost;
    });
  }

 private:
  // Index in [0, count) of the element at `rank` when all are sorted by `key`; ties by index.
  template <class Key>
  TFGW_DEVICE static int at_rank(int count, int rank, Key key) {
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

  TFGW_DEVICE double strength(int a, int b) const {
    return a == b ? 0.0 : magnitude(read_only(pair_.mean + a * P + b));
  }
  TFGW_DEVICE double mismatch(int i, int k) const {
    const int node = pair_.graph.first + i;
    const i64 other = i64(pair_.k) * P + k;
    const Problem& p = pair_.p;
    return node_mismatch(pair_.linear[i * P + k], pair_.alpha, p.out_mean[node] + p.in_mean[node],
                         p.t_mean_out[other] + p.t_mean_in[other]);
  }

  TFGW_DEVICE PinnedLinks choose_links(const Pin& pin) const {
    PinnedLinks links;
    const int from = at_rank(m_, pin.template_rank % m_, [&](int a) {
      double sum = 0;
#pragma unroll 2
      for (int b = 0; b < m_; ++b) sum += strength(a, b) * pair_.t_h(b);
      return -sum;
    });
    const int to = at_rank(m_, pin.link < m_ - 1 ? pin.link : m_ - 1, [&](int b) { return -strength(from, b); });
    links.template_from = from, links.template_to = strength(from, to) > 0 ? to : -1;
    links.graph_from = at_rank(n_, pin.graph_rank % n_, [&](int i) { return mismatch(i, from); });
    links.graph_to = links.template_to < 0 ? -1 : best_neighbour(links.graph_from, links.template_to);
    return links;
  }

  // The neighbour of a node that matches a template node best, or −1.
  TFGW_DEVICE int best_neighbour(int node, int template_node) const {
    u64 least = ~u64(0);
    int mine = n_;
#pragma unroll 1
    for (int way = 0; way < (pair_.graph.symmetric ? 1 : 2); ++way)
      pair_.neighbours.each(node, way == 1, lane(), 32, [&](int j, double c) {
        if (c == 0 || j == node) return;
        const u64 v = sortable(mismatch(j, template_node));
        if (v < least || (v == least && j < mine)) least = v, mine = j;
      });
    const u64 lowest = warp_min(least);
    const int found = int(warp_min(least == lowest ? u32(mine) : ~0u));
    return found < n_ ? found : -1;
  }

  // The distributions of two walks after some of their steps, scaled to a maximum of 1: from `first` and, unless it is
  // −1, from `second`. `step(now, i)` is (A + Aᵀ) times the distribution at node i, up to a factor.
  template <class Step>
  TFGW_DEVICE static void walk(int nodes, int stride, int first, int second, Double2* now, Double2* looks, Step step) {
    Double2* const next = now + stride;
    for (int i = lane(); i < nodes; i += 32) now[i] = {i == first ? 1.0 : 0.0, i == second ? 1.0 : 0.0};
    sync_warp();
#pragma unroll 1
    for (int t = 0;; ++t) {
      const int look = look_after(t);
#pragma unroll 1
      for (int i = lane(); i < nodes && look >= 0; i += 32) looks[look * stride + i] = now[i];
      if (look == kLooks - 1) break;
      Double2 peak{};
#pragma unroll 1
      for (int i = lane(); i < nodes; i += 32) {
        const Double2 v = step(now, i);
        next[i] = v;
        peak = {larger(peak.x, magnitude(v.x)), larger(peak.y, magnitude(v.y))};
      }
      peak = {warp_max(peak.x), warp_max(peak.y)};
      peak = {peak.x == 0 ? 1.0 : peak.x, peak.y == 0 ? 1.0 : peak.y};
      sync_warp();
#pragma unroll 1
      for (int i = lane(); i < nodes; i += 32) now[i] = {next[i].x / peak.x, next[i].y / peak.y};
      sync_warp();
    }
    sync_warp();
  }

  TFGW_DEVICE void walk_on_graph(int first, int second) const {
    walk(n_, n_, first, second, walks_, pair_.at.graph_looks, [&](const Double2* now, int i) {
      return pair_.neighbours.template both_ways<Double2>(i, [&](int j) { return now[j]; });
    });
  }
  TFGW_DEVICE void walk_on_template(int first, int second) const {
    walk(m_, P, first, second, walks_, pair_.at.template_looks, [&](const Double2* now, int a) {
      Double2 sum{};
#pragma unroll 4
      for (int b = 0; b < m_; ++b) {
        const double c = read_only(pair_.mean + b * P + a);
        sum.x += c * now[b].x, sum.y += c * now[b].y;
      }
      return sum;
    });
    for (int s = 0; s < kLooks; ++s)
      for (int k = m_ + lane(); k < P; k += 32) pair_.at.template_looks[s * P + k] = {};
    sync_warp();
  }

  const BeginPair<P>& pair_;
  Double2* const walks_;  // two distributions, on the graph or on the template
  const int n_, m_;
};

}  // namespace tfgw

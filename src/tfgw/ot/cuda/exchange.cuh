// Exchanges of two entries of a plan: the counterpart of cpp/exchange.cpp, which explains them.
#pragma once

#include "neighbours.cuh"
#include "pair.cuh"
#include "starts_memory.cuh"

namespace tfgw {

// The working memory of the pair that a team solves.
template <int P>
TFGW_DEVICE StartsMemory<P> starts_memory(const Frame& frame) {
  return {frame.global + 8 * Workspace<P, false>::size(frame.graph.n), frame.graph.n};
}

template <class Kind>
class ExchangeSearch {
  using Team = typename Kind::Team;
  static constexpr int P = Kind::Tree::kColumns;
  static constexpr int kWords = Shape<P>::kColumnsPerLane;

 public:
  TFGW_DEVICE ExchangeSearch()
      : p_(pair_.p), frame_(pair_.frame), at_(starts_memory<P>(frame_)), neighbours_(p_, frame_.graph), n_(pair_.n),
        m_(pair_.m), mean_(p_.mean + i64(frame_.k) * P * P) {}

  // Finds the exchange between linked nodes that lowers E the most, if any lowers it by more than `least`.
  TFGW_DEVICE void run(double least) {
    Found found;
    found.change = -least;
    const i64 first = frame_.graph.sparse ? p_.row_start[frame_.graph.first] : 0;
    const i64 end = frame_.graph.sparse ? p_.row_start[frame_.graph.first + n_] : i64(n_) * n_;
#pragma unroll 1
    for (i64 e = first + Team::thread(); e < end; e += Team::kThreads) look_at(e, found);
    best_of_warp(found);
    best_of_team(found);
    if (Team::thread() == 0) {
      Exchange result{-1, 0, 0, 0, 0, 0};
      if (found.entry >= 0) {
        const Link link = link_at(found.entry);
        const double curvature = factor(link) * template_factor(found.k, found.l);
        result = {link.i, link.j, found.k, found.l, mass(link.i, link.j, found.k, found.l), curvature};
      }
      *at_.exchange = result;
    }
    Team::sync();
  }

 private:
  struct Link {
    int i, j;
    double weight;
    bool stored;
  };
  struct Found {
    double change;
    i64 entry = -1;
    int k = 0, l = 0;
  };

  TFGW_DEVICE Link link_at(i64 e) const {
    if (!frame_.graph.sparse) return {int(e / n_), int(e % n_), read_only(frame_.graph.dense + e), true};
    const Entry a = read_only(p_.entry + e);
    return {a.row, a.col, a.weight, a.weight != 0 || is_stored(e, a.row)};
  }
  // Entries beyond the end of a row are padding of weight 0.
  TFGW_DEVICE bool is_stored(i64 e, int row) const {
    const int node = frame_.graph.first + row;
    return e < p_.row_start[node] + p_.row_length[node];
  }
  // a = C_ii + C_jj − C_ij − C_ji
  TFGW_DEVICE double factor(const Link& link) const {
    const double back = frame_.graph.symmetric ? link.weight : neighbours_.at(link.j, link.i);
    const bool loops = !frame_.graph.sparse || p_.edge_weight;
    const double diagonal = loops ? neighbours_.at(link.i, link.i) + neighbours_.at(link.j, link.j) : 0.0;
    return diagonal - link.weight - back;
  }
  TFGW_DEVICE double template_factor(int k, int l) const {
    const auto at = [&](int row, int col) { return read_only(mean_ + row * P + col); };
    return at(k, k) + at(l, l) - 2 * at(k, l);
  }
  TFGW_DEVICE double mass(int i, int j, int k, int l) const {
    return smaller(at_.plan[i * P + k], at_.plan[j * P + l]);
  }

  TFGW_DEVICE void look_at(i64 e, Found& found) const {
    const Link link = link_at(e);
    const int i = link.i, j = link.j;
    if (!link.stored || i == j || (frame_.graph.symmetric && j < i)) return;
    const double a = factor(link);
    const double* const to_i = pair_.w.gradient + i * P;
    const double* const to_j = pair_.w.gradient + j * P;
    each_used(i, [&](int k) {
      each_used(j, [&](int l) {
        const double slope = to_i[l] + to_j[k] - to_i[k] - to_j[l];
        const double change = exchange_change(mass(i, j, k, l), slope, frame_.alpha, a, template_factor(k, l));
        if (change < found.change) found = {change, e, k, l};
      });
    });
  }
  template <class Visit>
  TFGW_DEVICE void each_used(int i, Visit visit) const {
#pragma unroll 1
    for (int q = 0; q < kWords; ++q)
#pragma unroll 1
      for (u32 left = at_.used[i * kWords + q]; left; left &= left - 1) visit(32 * q + lowest_bit(left));
  }

  // The lane with the lowest change; among several, the one with the first entry.
  TFGW_DEVICE static void best_of_warp(Found& found) {
    const u64 key = found.entry >= 0 ? sortable(found.change) : ~u64(0), least = warp_min(key);
    const u64 entry = key == least ? u64(found.entry) : ~u64(0), first = warp_min(entry);
    const u32 holder = ballot(entry == first);
    const int from = lowest_bit(holder);
    found.change = shfl(found.change, from), found.entry = i64(shfl(u64(found.entry), from));
    found.k = shfl(found.k, from), found.l = shfl(found.l, from);
  }
  TFGW_DEVICE void best_of_team(Found& found) {
    if constexpr (!Team::kSingleWarp) {
      auto& share = pair_.memory.sums;
      if (lane() == 0) {
        double* const mine = share[Team::warp()];
        mine[0] = found.change, mine[1] = double(found.entry), mine[2] = found.k, mine[3] = found.l;
      }
      Team::sync();
#pragma unroll
      for (int w = 0; w < Team::kSize; ++w) {
        const double* const other = share[w];
        const i64 entry = i64(other[1]);
        const bool lower = other[0] < found.change || (other[0] == found.change && entry < found.entry);
        if (entry >= 0 && (found.entry < 0 || lower)) found = {other[0], entry, int(other[2]), int(other[3])};
      }
      Team::sync();
    }
  }

  Pair<Kind> pair_;
  const Problem& p_;
  const Frame& frame_;
  const StartsMemory<P> at_;
  const Neighbours neighbours_;
  const int n_, m_;
  const double* const mean_;
};

// For the plan of the last descent; the gradient there is in memory. Not inlined, so that it does not take registers from
// the descent.
template <class Kind>
TFGW_NOINLINE void find_exchange(double least) {
  ExchangeSearch<Kind>().run(least);
}

// C u and Cᵀ u for u = eᵢ − eⱼ. Not inlined either.
template <class Kind>
TFGW_NOINLINE void find_differences(int i, int j) {
  using Team = typename Kind::Team;
  constexpr int P = Kind::Tree::kColumns;
  const Frame& frame = block_memory<P>().frame[Team::kSingleWarp ? thread_in_block() / 32 : 0];
  const StartsMemory<P> at = starts_memory<P>(frame);
  for (int r = Team::thread(); r < frame.graph.n; r += Team::kThreads)
    at.column_difference[r] = at.row_difference[r] = 0;
  Team::sync();
  const Neighbours neighbours(block_memory<P>().problem, frame.graph);
  if (Team::warp() == 0)
#pragma unroll 1
    for (int part = 0; part < 4; ++part) {  // one after the other: the entries of each are in different rows
      const bool of_column = part < 2, negative = part % 2;
      double* const to = of_column ? at.column_difference : at.row_difference;
      neighbours.each(negative ? j : i, of_column, lane(), 32, [&](int r, double c) {
        if (c != 0) to[r] += negative ? -c : c;
      });
      sync_warp();
    }
  Team::sync();
}

}  // namespace tfgw

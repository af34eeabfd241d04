// Exact linear optimal transport by one warp: the counterpart of cpp/transport.cpp, with the same order of pivots.
#pragma once

#include "core_tree.cuh"
#include "flat_tree.cuh"

namespace tfgw {

enum class Outcome { optimal, improved };

constexpr int kPricedEntries = 4096;  // costs looked at before the best candidates are pivoted on

template <class Tree>
class Transport {
  static constexpr int P = Tree::kColumns;
  using S = Shape<P>;

 public:
  TFGW_DEVICE explicit Transport(typename Tree::Memory& memory) : tree_(memory) {}

  struct Buffers {
    RowArrays rows;
    double* regret;       // one entry per row
    int* order;
    double* centred;      // (rows, P)
  };

  TFGW_DEVICE void reset(int rows, int cols, const i64* supply, const i64* demand, const Buffers& buffers) {
    rows_ = rows, cols_ = cols, supply_ = supply, demand_ = demand, at_ = buffers;
    has_basis_ = false;
  }

  // Optimal flow for `cost` (rows, P), from the last basis, or from a greedy one after `reset`. With `max_sweeps` > 0 it
  // stops after so many sweeps over the costs even if the flow could still improve.
  TFGW_DEVICE Outcome solve(const double* cost, int max_sweeps) {
    cost_ = cost;
    if (!has_basis_) greedy_basis();
    has_basis_ = true;
    eps_ = rounding(tree_.compute_potentials(cost));
    return run(max_sweeps);
  }

  TFGW_DEVICE const Tree& tree() const { return tree_; }

 private:
  // With costs up to `largest`, a reduced cost below this is rounding.
  TFGW_DEVICE double rounding(double largest) const { return 4 * 2.220446049250313e-16 * (rows_ + cols_) * largest; }

  TFGW_DEVICE Outcome run(int max_sweeps) {
    const int stride = (cols_ + 3) / 4 * 4;  // as the CPU core blocks its rows
    const int whole = kPricedEntries / stride > 1 ? kPricedEntries / stride : 1;
    const int block = whole < rows_ ? whole : rows_;
    int first = 0, clean_rows = 0, sweeps = 0;
    while (clean_rows < rows_ && (max_sweeps == 0 || sweeps < max_sweeps)) {
      const int last = first + block < rows_ ? first + block : rows_;
      price(first, last);
      clean_rows = pivot_on_candidates() ? 0 : clean_rows + last - first;
      first = last == rows_ ? 0 : last;
      sweeps += first == 0;
    }
    return clean_rows < rows_ ? Outcome::improved : Outcome::optimal;
  }

  // For each column, the row in [first, last) of the smallest cost − u, if below v − eps; else −1.
  TFGW_DEVICE void price(int first, int last) {
    tree_.hold_row_potentials(first, last);
    const int column = P < 32 ? lane() % P : lane();
    double lowest[S::kColumnsPerLane];
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q) {
      candidate_[q] = -1;
      lowest[q] = tree_.col_potential(column + 32 * q) - eps_;
    }
    const double* const from = cost_ + column;
    constexpr int kAhead = 4;  // rows that are compared with each other before the lowest waits for them
    int i = first + (P < 32 ? lane() / P : 0);
    for (; i + (kAhead - 1) * S::kRowsAtOnce < last; i += kAhead * S::kRowsAtOnce) {
      double c[kAhead][S::kColumnsPerLane];
#pragma unroll
      for (int s = 0; s < kAhead; ++s) {
        const int row = i + s * S::kRowsAtOnce;
        const double u = tree_.held_row_potential(row);
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q) c[s][q] = from[row * P + 32 * q] - u;
      }
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) {
        const bool second = c[1][q] < c[0][q], fourth = c[3][q] < c[2][q];
        const double front = second ? c[1][q] : c[0][q], back = fourth ? c[3][q] : c[2][q];
        const bool later = back < front;
        const double least = later ? back : front;
        const int at = i + S::kRowsAtOnce * (later ? 2 + fourth : second);
        if (least < lowest[q]) lowest[q] = least, candidate_[q] = at;
      }
    }
    for (; i < last; i += S::kRowsAtOnce) {
      const double u = tree_.held_row_potential(i);
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) {
        const double c = from[i * P + 32 * q] - u;
        if (c < lowest[q]) lowest[q] = c, candidate_[q] = i;
      }
    }
    for (int distance = P; distance < 32; distance *= 2) {  // the lanes that looked at other rows of the same column
      const double other = across(lowest[0], distance);
      const int row = across(candidate_[0], distance);
      if (row >= 0 && (candidate_[0] < 0 || other < lowest[0] || (other == lowest[0] && row < candidate_[0])))
        lowest[0] = other, candidate_[0] = row;
    }
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q) {
      if (lane() + 32 * q >= cols_) candidate_[q] = -1;
      candidate_cost_[q] = candidate_[q] >= 0 ? from[candidate_[q] * P + 32 * q] : 0.0;
    }
  }

  // Pivots on the best cell of each column, most negative first, while they stay improving. False if none was.
  TFGW_DEVICE bool pivot_on_candidates() {
    bool improved = false;
    while (true) {
      double lowest = -eps_;
      int mine = -1;  // which of this lane's columns
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) {
        const int row = candidate_[q] < 0 ? 0 : candidate_[q];
        const double reduced = candidate_cost_[q] - tree_.row_potential(row) - tree_.my_col_potential(q);
        if (candidate_[q] >= 0 && reduced < lowest) lowest = reduced, mine = q;
      }
      // Negative numbers: the larger their bits, the lower they are.
      const u64 key = mine >= 0 ? ~bits_of(lowest) : ~u64(0);
      const u32 high = warp_min(u32(key >> 32));
      if (high == ~0u) return improved;
      improved = true;
      u32 holders = ballot(u32(key >> 32) == high);
      if (holders & (holders - 1)) {
        holders = u32(1) << lane_of_least(key, u32(lane() + 32 * (mine < 0 ? 0 : mine)));
      }
      const int owner = lowest_bit(holders), q = from_lane(mine, owner);
      const int row = from_lane(pick(candidate_, q), owner);
      tree_.pivot(row, owner + 32 * q, from_lane(lowest, owner));
      // Some number that is not below the new arc's cost, to which the tolerance is proportional.
      u32 cost = 0;
#pragma unroll
      for (int s = 0; s < S::kColumnsPerLane; ++s)
        if (s == q) cost = u32(bits_of(magnitude(candidate_cost_[s])) >> 32) + 1;
      eps_ = larger(eps_, rounding(double_of(u64(from_lane(cost, owner)) << 32)));
    }
  }

  // Rows in decreasing order of regret: the gap between their cheapest and second cheapest column, after each column's
  // mean is taken off: what makes a column dear to every row does not matter to the plan.
  TFGW_DEVICE void order_rows() {
    for (int k = lane(); k < cols_; k += 32) {
      double sum = 0;
#pragma unroll 4
      for (int i = 0; i < rows_; ++i) sum += cost_[i * P + k];
      const double mean = sum / rows_;
#pragma unroll 4
      for (int i = 0; i < rows_; ++i) at_.centred[i * P + k] = cost_[i * P + k] - mean;
    }
    sync();
    for (int i = lane(); i < rows_; i += 32) {
      double least = kPadCost, second = kPadCost;
#pragma unroll 4
      for (int k = 0; k < cols_; ++k) {
        const double c = at_.centred[i * P + k];
        second = smaller(second, larger(least, c));
        least = smaller(least, c);
      }
      at_.regret[i] = cols_ > 1 ? second - least : 0.0;
    }
    sync();
    for (int i = lane(); i < rows_; i += 32) {
      const double mine = at_.regret[i];
      int rank = 0;
#pragma unroll 2
      for (int j = 0; j < rows_; ++j) rank += at_.regret[j] > mine || (at_.regret[j] == mine && j < i);
      at_.order[rank] = i;
    }
    sync();
  }

  // Ships greedily, each row to its cheapest open column, rows with most to lose first. Ties are decided as if every
  // node but the root had a vanishing extra supply (`extra` counts it): a basis that is feasible then is strongly
  // feasible. Every demand must be positive.
  TFGW_DEVICE void greedy_basis() {
    order_rows();
    tree_.reset(rows_, cols_, supply_, at_.rows);
    i64 want[S::kColumnsPerLane];
    int extra_want[S::kColumnsPerLane];
    bool open[S::kColumnsPerLane];
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q) {
      const int k = lane() + 32 * q;
      open[q] = k < cols_;
      want[q] = open[q] ? demand_[k] : 0;
      extra_want[q] = k == cols_ - 1 ? rows_ + cols_ - 1 : -1;
    }
    int open_cols = cols_;
    for (int r = 0; r < rows_; ++r) {
      const int row = at_.order[r];
      i64 have = supply_[row];
      int extra_have = 1;
      bool first = true;
      while (true) {
        u64 cheapest = ~u64(0);
        int at = 0;
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q) {
          const u64 c = open[q] ? sortable(at_.centred[row * P + lane() + 32 * q]) : ~u64(0);
          if (c < cheapest) cheapest = c, at = q;
        }
        const int owner = lane_of_least(cheapest, u32(lane() + 32 * at));
        i64 mine = 0;
        int extra_mine = 0;
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q)
          if (q == at) mine = want[q], extra_mine = extra_want[q];
        const i64 wanted = from_lane(mine, owner);
        const int extra = from_lane(extra_mine, owner), k = from_lane(lane() + 32 * at, owner);
        const bool fills = open_cols > 1 && (wanted < have || (wanted == have && extra < extra_have));
        tree_.add_arc(row, k, fills ? wanted : have, first, !fills);
        first = false;
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q) {
          if (lane() != owner || q != at) continue;
          want[q] -= have, extra_want[q] -= extra_have;
          open[q] = !fills;
        }
        if (!fills) break;
        have -= wanted, extra_have -= extra;
        --open_cols;
      }
    }
    tree_.root();
  }

  Tree tree_;
  int rows_ = 0, cols_ = 0;
  bool has_basis_ = false;
  const i64 *supply_ = nullptr, *demand_ = nullptr;
  Buffers at_{};
  const double* cost_ = nullptr;
  double eps_ = 0;
  int candidate_[S::kColumnsPerLane];
  double candidate_cost_[S::kColumnsPerLane];
};

}  // namespace tfgw

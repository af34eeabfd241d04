// Exact linear optimal transport: the counterpart of cpp/transport.cpp, with the same order of pivots. One warp has the
// basis.
#pragma once

#include "pricing.cuh"

namespace tfgw {

enum class Outcome { optimal, improved };

template <class Tree>
class Transport {
  static constexpr int P = Tree::kColumns;
  using S = Shape<P>;

 public:
  using Found = Candidates<S::kColumnsPerLane>;

  // `cost` is (rows, P), of which `block` rows are priced together.
  TFGW_DEVICE Transport(typename Tree::Memory* memory, int rows, int cols, int block, const double* cost,
                        const i64* demand, const FirstBasis& first, const RowArrays& arrays)
      : tree_(memory, rows, cols, first.supply, arrays), rows_(rows), cols_(cols), block_(block), cost_(cost),
        demand_(demand), at_(first) {}

  // Ships greedily, each row to its cheapest open column, rows with most to lose first. Ties are decided as if every
  // node but the root had a vanishing extra supply (`extra` counts it): a basis that is feasible then is strongly
  // feasible. Every demand must be positive.
  TFGW_DEVICE void greedy_basis() {
    tree_.clear();
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
    u64 key[S::kColumnsPerLane];
    int row = at_.order[0];
    i64 have = at_.supply[row];
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q) key[q] = at_.centred[row * P + (lane() + 32 * q) % P];
    for (int r = 0; r < rows_; ++r) {
      const int next = at_.order[r + 1 < rows_ ? r + 1 : r];  // what the next row needs is on its way
      const i64 next_have = at_.supply[next];
      u64 next_key[S::kColumnsPerLane];
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) next_key[q] = at_.centred[next * P + (lane() + 32 * q) % P];
      int extra_have = 1;
      bool first = true;
      while (true) {
        u64 cheapest = ~u64(0), mine = 0;
        int extra_mine = 0, at = 0;
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q)
          if (open[q] && key[q] < cheapest) cheapest = key[q], at = q, mine = u64(want[q]), extra_mine = extra_want[q];
        const int owner = lane_of_least(cheapest, u32(lane() + 32 * at));
        const i64 wanted = i64(from_lane(mine, owner));
        const int extra = from_lane(extra_mine, owner), k = owner + 32 * from_lane(at, owner);
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
      row = next, have = next_have;
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) key[q] = next_key[q];
    }
    tree_.root();
  }

  // From the last basis to an optimal flow for the costs, or, with `max_sweeps` > 0, not further than so many sweeps
  // over them lead. `price_together(first, eps)` is to have every warp price the rows from `first` on, after a meeting,
  // and to return what they found.
  template <class Price>
  TFGW_DEVICE Outcome solve(int max_sweeps, Price price_together) {
    const double unit = 4 * 2.220446049250313e-16 * (rows_ + cols_);  // reduced costs below unit · cost are rounding
    double eps = unit * tree_.compute_potentials(cost_);
    int first = 0, clean_rows = 0, sweeps = 0;
    moved_ = false;
    while (clean_rows < rows_ && (max_sweeps == 0 || sweeps < max_sweeps)) {
      tree_.publish();
      const Found found = price_together(first, eps);
      const int last = first + block_ < rows_ ? first + block_ : rows_;
      clean_rows = tree_.pivot_on(found, unit, eps, moved_) ? 0 : clean_rows + last - first;
      first = last == rows_ ? 0 : last;
      sweeps += first == 0;
    }
    tree_.publish();
    sync();
    return clean_rows < rows_ ? Outcome::improved : Outcome::optimal;
  }

  // Leaves out columns that are not there or another lane has as well, and looks the costs up.
  TFGW_DEVICE void complete(Found& found) const {
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q) {
      if (lane() + 32 * q >= cols_) found.row[q] = -1;
      found.cost[q] = found.row[q] >= 0 ? cost_[found.row[q] * P + lane() + 32 * q] : 0.0;
    }
  }

  TFGW_DEVICE const Tree& tree() const { return tree_; }
  TFGW_DEVICE bool moved() const { return moved_; }  // whether the last solve changed the flow

 private:
  Tree tree_;
  const int rows_, cols_, block_;
  const double* const cost_;
  const i64* const demand_;
  const FirstBasis at_;
  bool moved_ = false;
};

}  // namespace tfgw

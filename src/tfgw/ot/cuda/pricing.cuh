// What all warps of a team do for the simplex: how dear columns are to rows before the first basis, and the search for
// cells that would improve the flow, each warp in its share of the rows.
#pragma once

#include "core_tree.cuh"
#include "flat_tree.cuh"
#include "team.cuh"

namespace tfgw {

// Rows whose costs are looked at before the best candidates are pivoted on; the CPU core takes as many.
TFGW_DEVICE int priced_rows(int cols) {
  const int rows = 4096 / ((cols + 3) / 4 * 4);
  return rows > 1 ? rows : 1;
}

// What makes the first basis, one entry per row.
struct FirstBasis {
  double* regret;
  i64* supply;
  int* order;
  u64* centred;  // (rows, P)
};

// Of two candidates for a lane's column q the lower one.
template <int N>
TFGW_DEVICE void keep_lower(Candidates<N>& found, int q, double lowest, int row) {
  if (lowest < found.lowest[q]) found.lowest[q] = lowest, found.row[q] = row;
}

template <class Tree, class Team>
class Pricing {
  static constexpr int P = Tree::kColumns;
  using S = Shape<P>;

 public:
  using Found = Candidates<S::kColumnsPerLane>;

  // `cost` is (rows, P), of which `block` rows are priced together.
  TFGW_DEVICE Pricing(int rows, int cols, int block, const double* cost, const typename Tree::View& tree,
                      const FirstBasis& first)
      : rows_(rows), cols_(cols), block_(block), cost_(cost), tree_(tree), at_(first) {}

  // Each row's costs less their columns' means (what makes a column dear to every row does not matter), and
  // its regret, the gap between its cheapest and second cheapest column.
  TFGW_DEVICE void compute_regrets() {
    const Share rows = share(0, rows_);
    double mean[S::kColumnsPerLane];
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q) {
      mean[q] = 0;
#pragma unroll 2
      for (int i = S::my_row(); i < rows_; i += S::kRowsAtOnce) mean[q] += cost_[i * P + S::my_column() + 32 * q];
      for (int distance = P; distance < 32; distance *= 2) mean[q] += across(mean[q], distance);
      mean[q] /= rows_;
    }
#pragma unroll 1
    for (int i = rows.first + S::my_row(); i < rows.last; i += S::kRowsAtOnce)
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) {
        const int k = S::my_column() + 32 * q;
        at_.centred[i * P + k] = k < cols_ ? sortable(cost_[i * P + k] - mean[q]) : ~u64(0);
      }
    sync();
#pragma unroll 1
    for (int i = rows.first + lane(); i < rows.last; i += 32) {
      double least = kPadCost, second = kPadCost;
      int k = lane() % cols_;  // lanes begin at different columns: in different banks of memory
#pragma unroll 2
      for (int s = 0; s < cols_; ++s) {
        const double c = from_sortable(at_.centred[i * P + k]);
        second = smaller(second, larger(least, c));
        least = smaller(least, c);
        k = k + 1 < cols_ ? k + 1 : 0;
      }
      at_.regret[i] = cols_ > 1 ? second - least : 0.0;
    }
  }

  // Rows in decreasing order of regret.
  TFGW_DEVICE void order_rows() {
#pragma unroll 1
    for (int i = Team::thread(); i < rows_; i += Team::kThreads) {
      const double mine = at_.regret[i];
      int rank = 0;
#pragma unroll 4
      for (int j = 0; j < rows_; ++j) rank += at_.regret[j] > mine || (at_.regret[j] == mine && j < i);
      at_.order[rank] = i;
    }
  }

  // This warp's share of a block of rows, from `first` on: for each column the row of the smallest cost − u, if that is
  // below v − eps; else −1. Every lane has the columns `my_column` + 32 q, but may have seen some rows only.
  TFGW_DEVICE Found price(int first, double eps) {
    const Share rows = share(first, first + block_ < rows_ ? first + block_ : rows_);
    tree_.hold_rows(rows.first, rows.last);
    Found found;
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q)
      found.row[q] = -1, found.lowest[q] = tree_.col(S::my_column() + 32 * q) - eps;
    const double* const from = cost_ + S::my_column();
    constexpr int kAhead = 4;  // rows that are compared with each other before the lowest waits for them
#pragma unroll 1
    for (int i = rows.first + S::my_row(); i < rows.last; i += kAhead * S::kRowsAtOnce) {
      double c[kAhead][S::kColumnsPerLane];
#pragma unroll
      for (int s = 0; s < kAhead; ++s) {
        const int row = i + s * S::kRowsAtOnce, there = row < rows.last ? row : i;  // the first one again is no better
        const double u = tree_.held_row(there);
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q) c[s][q] = from[there * P + 32 * q] - u;
      }
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) {
        const bool second = c[1][q] < c[0][q], fourth = c[3][q] < c[2][q];
        const double front = second ? c[1][q] : c[0][q], back = fourth ? c[3][q] : c[2][q];
        const bool later = back < front;
        const double least = later ? back : front;
        const int at = i + S::kRowsAtOnce * (later ? 2 + fourth : second);
        if (least < found.lowest[q]) found.lowest[q] = least, found.row[q] = at;
      }
    }
    for (int distance = P; distance < 32; distance *= 2) {  // the lanes that looked at other rows of the same column
      const double lowest = across(found.lowest[0], distance);
      const int row = across(found.row[0], distance);
      // Without a candidate, a column's lowest is still what all began with. Of equal ones the first row counts.
      if (lowest < found.lowest[0] || (lowest == found.lowest[0] && row < found.row[0]))
        found.lowest[0] = lowest, found.row[0] = row;
    }
    return found;
  }

 private:
  struct Share {
    int first, last;
  };
  TFGW_DEVICE Share share(int first, int last) const {
    const int each = (last - first + Team::kSize - 1) / Team::kSize, from = first + Team::warp() * each;
    return {from < last ? from : last, from + each < last ? from + each : last};
  }


  const int rows_, cols_, block_;
  const double* const cost_;
  const typename Tree::View tree_;
  const FirstBasis at_;
};

}  // namespace tfgw

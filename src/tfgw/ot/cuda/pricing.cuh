// The search for cells that would improve the flow, each warp of a team in its share of the rows.
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
  TFGW_DEVICE Pricing(int rows, int block, const double* cost, const typename Tree::View& tree)
      : rows_(rows), block_(block), cost_(cost), tree_(tree) {}

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
    // Rows that are compared with each other before the lowest waits for them.
    constexpr int kAhead = !Team::kAlone ? 8 : P < 32 ? 2 : 4;
#pragma unroll 1
    for (int i = rows.first + S::my_row(); i < rows.last; i += kAhead * S::kRowsAtOnce) {
      double c[kAhead][S::kColumnsPerLane];
      int at[kAhead][S::kColumnsPerLane];
#pragma unroll
      for (int s = 0; s < kAhead; ++s) {
        const int row = i + s * S::kRowsAtOnce, there = row < rows.last ? row : i;  // the first one again is no better
        const double u = tree_.held_row(there);
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q) c[s][q] = from[there * P + 32 * q] - u, at[s][q] = there;
      }
#pragma unroll
      for (int step = 1; step < kAhead; step *= 2)
#pragma unroll
        for (int s = 0; s < kAhead; s += 2 * step)
#pragma unroll
          for (int q = 0; q < S::kColumnsPerLane; ++q) {
            const bool later = c[s + step][q] < c[s][q];
            c[s][q] = later ? c[s + step][q] : c[s][q], at[s][q] = later ? at[s + step][q] : at[s][q];
          }
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q)
        if (c[0][q] < found.lowest[q]) found.lowest[q] = c[0][q], found.row[q] = at[0][q];
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

  const int rows_, block_;
  const double* const cost_;
  const typename Tree::View tree_;
};

}  // namespace tfgw

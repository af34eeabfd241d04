// Pricing: the search for entering arcs, each warp of a team in its share of the rows.
#pragma once

#include "core_tree.cuh"
#include "flat_tree.cuh"
#include "team.cuh"

namespace tfgw {

// Keeps the lower of two candidates for a lane's column q.
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

  // This warp's share of a block of rows, from `first` on: for each column the row of the smallest cost − u, if below
  // v − eps, else −1. Each lane has the columns `my_column` + 32 q. Lanes with the same column are combined.
  TFGW_DEVICE Found price(int first, double eps) {
    const Rows rows = share({first, first + block_ < rows_ ? first + block_ : rows_});
    tree_.cache_rows(rows.first, rows.last);
    Found found;
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q)
      found.row[q] = -1, found.lowest[q] = tree_.col(S::my_column() + 32 * q) - eps;
    constexpr int kMost = 32 / S::kColumnsPerLane;  // rows of which a lane has all costs in registers
    if (Team::kSingleWarp || kMost < 8 || !look_through<kMost < 8 ? kMost : 8>(rows, found))
      if (!look_through<kMost < 4 ? kMost : 4>(rows, found)) look_through<1>(rows, found);
    for (int distance = P; distance < 32; distance *= 2) {  // lanes that priced other rows of the same column
      const double lowest = shfl_xor(found.lowest[0], distance);
      const int row = shfl_xor(found.row[0], distance);
      // Without a candidate, `lowest` is still the initial bound. Among equal candidates the first row wins.
      if (lowest < found.lowest[0] || (lowest == found.lowest[0] && row < found.row[0]))
        found.lowest[0] = lowest, found.row[0] = row;
    }
    return found;
  }

 private:
  struct Rows {
    int first, last;
  };
  TFGW_DEVICE static Rows share(const Rows& all) {
    const int each = (all.last - all.first + Team::kSize - 1) / Team::kSize, from = all.first + Team::warp() * each;
    return {from < all.last ? from : all.last, from + each < all.last ? from + each : all.last};
  }

  // Compares kCount rows with each other before comparing the result with the lowest. The last batch may overlap
  // earlier rows, which is harmless. Returns false if there are fewer rows.
  template <int kCount>
  TFGW_DEVICE bool look_through(const Rows& rows, Found& found) const {
    if (rows.last - rows.first < kCount) return false;
    const int each = (rows.last - rows.first + S::kRowsAtOnce - 1) / S::kRowsAtOnce, last = rows.last - kCount;
    int i = rows.first + S::my_row() * each;
#pragma unroll 1
    for (int seen = 0; seen < each; seen += kCount, i += kCount) look_at<kCount>(i < last ? i : last, found);
    return true;
  }

  // kCount rows from `first` on.
  template <int kCount>
  TFGW_DEVICE void look_at(int first, Found& found) const {
    const double* const from = cost_ + first * P + S::my_column();
    double c[kCount][S::kColumnsPerLane];
    int at[kCount][S::kColumnsPerLane];
#pragma unroll
    for (int s = 0; s < kCount; ++s) {
      const double u = tree_.cached_row(first + s);
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) c[s][q] = from[s * P + 32 * q] - u, at[s][q] = s;
    }
#pragma unroll
    for (int step = 1; step < kCount; step *= 2)
#pragma unroll
      for (int s = 0; s < kCount; s += 2 * step)
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q) {
          const bool later = c[s + step][q] < c[s][q];
          c[s][q] = later ? c[s + step][q] : c[s][q], at[s][q] = later ? at[s + step][q] : at[s][q];
        }
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q)
      if (c[0][q] < found.lowest[q]) found.lowest[q] = c[0][q], found.row[q] = first + at[0][q];
  }

  const int rows_, block_;
  const double* const cost_;
  const typename Tree::View tree_;
};

}  // namespace tfgw

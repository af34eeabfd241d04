// Exact linear optimal transport: the counterpart of cpp/transport.cpp, with the same order of pivots. One warp has the
// basis.
#pragma once

#include "beginning.cuh"
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
                        const i64* supply, const RowArrays& arrays)
      : tree_(memory, rows, cols, supply, arrays), rows_(rows), cols_(cols), block_(block), cost_(cost) {}

  // The first basis.
  TFGW_DEVICE void begin(const Arc* arcs) { tree_.begin(arcs, rows_ + cols_ - 1); }

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
  bool moved_ = false;
};

}  // namespace tfgw

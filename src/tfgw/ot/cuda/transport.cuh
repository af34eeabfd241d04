// Exact linear optimal transport: the counterpart of cpp/transport.cpp, with the same order of pivots.
#pragma once

#include "initial_state.cuh"
#include "pricing.cuh"

namespace tfgw {

// State that the leading warp broadcasts to the others.
struct LeaderState {
  double eps;
  bool pivoted, moved;
};

// The basis is distributed over the warps of a team, or held by the first warp, which leads the others.
template <class Tree, class Team>
class Transport {
  static constexpr bool kOneWarpTree = Tree::Team::kSize < Team::kSize;
  static constexpr int P = Tree::kColumns;
  using S = Shape<P>;

 public:
  using Found = Candidates<S::kColumnsPerLane>;

  // `cost` is (rows, P), of which `block` rows are priced together.
  TFGW_DEVICE Transport(typename Tree::Memory* memory, int rows, int cols, int block, const double* cost,
                        const i64* supply, const RowArrays& arrays, LeaderState* leader_state)
      : tree_(memory, rows, cols, supply, arrays), rows_(rows), cols_(cols), block_(block), cost_(cost),
        leader_state_(leader_state) {}

  // The first basis.
  TFGW_DEVICE void begin(const Arc* arcs) {
    if (has_arcs()) tree_.begin(arcs, rows_ + cols_ - 1);
  }

  // Optimal flow for the costs, from the last basis. With `max_sweeps` > 0 it stops after that many sweeps over the
  // costs. `price(first, eps)` returns the candidates of all warps in the rows from `first` on. `ignored(eps)` is called
  // at the end: reduced costs down to −eps are taken for rounding.
  template <class Price, class Ignored>
  TFGW_DEVICE Outcome solve(int max_sweeps, Price price, Ignored ignored) {
    const double unit = reduced_cost_rounding(rows_, cols_);
    double eps = 0;
    moved_ = false;
    if (has_arcs()) {
      eps = unit * tree_.compute_potentials(cost_);
      tree_.publish();
    }
    broadcast(eps);
    int first = 0, clean_rows = 0, sweeps = 0;
#pragma unroll 1
    while (clean_rows < rows_ && (max_sweeps == 0 || sweeps < max_sweeps)) {
      const Found found = price(first, eps);
      const int last = first + block_ < rows_ ? first + block_ : rows_;
      bool pivoted = false;
      if (has_arcs()) {
        pivoted = tree_.pivot_on(found, unit, eps, moved_);
        if (pivoted) tree_.publish();
      }
      pivoted = broadcast(eps, pivoted);
      clean_rows = pivoted ? 0 : clean_rows + last - first;
      first = last == rows_ ? 0 : last;
      sweeps += first == 0;
    }
    ignored(eps);
    return clean_rows < rows_ ? Outcome::improved : Outcome::optimal;
  }

  // Drops columns that are padding or belong to another lane, and looks up the costs.
  TFGW_DEVICE void complete(Found& found) const {
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q) {
      if (lane() + 32 * q >= cols_) found.row[q] = -1;
      found.cost[q] = found.row[q] >= 0 ? cost_[found.row[q] * P + lane() + 32 * q] : 0.0;
    }
  }

  // Calls visit(row, col, flow, whether the row is below the column) for every arc, each by one lane of the team.
  template <class Visit>
  TFGW_DEVICE void for_each_arc(Visit visit) const {
    if (has_arcs()) tree_.for_each_arc(visit);
  }
  // Calls visit(flow, load(row, col)) for every arc, each by one lane of the team. All lanes call `meanwhile`
  // while the loads are in flight.
  template <class Load, class Meanwhile, class Visit>
  TFGW_DEVICE void for_each_arc(Load load, Meanwhile meanwhile, Visit visit) const {
    if (has_arcs()) tree_.for_each_arc(load, meanwhile, visit);
    else meanwhile();
  }
  TFGW_DEVICE bool moved() const { return moved_; }  // whether the last solve changed the flow

 private:
  TFGW_DEVICE static bool has_arcs() { return !kOneWarpTree || Team::warp() == 0; }

  // Broadcasts the state of the leading warp to all warps. Returns `pivoted`.
  TFGW_DEVICE bool broadcast(double& eps, bool pivoted = false) {
    if (kOneWarpTree && Team::thread() == 0) *leader_state_ = {eps, pivoted, moved_};
    Team::sync();
    if constexpr (!kOneWarpTree) return pivoted;
    eps = leader_state_->eps, moved_ = leader_state_->moved;
    return leader_state_->pivoted;
  }

  Tree tree_;
  const int rows_, cols_, block_;
  const double* const cost_;
  LeaderState* const leader_state_;
  bool moved_ = false;
};

}  // namespace tfgw

// Exact linear optimal transport: primal network simplex on the complete bipartite graph rows × columns.
//
// The basis (basis.hpp) is kept between calls: marginals do not change from one Frank-Wolfe iteration to the next, so
// the last optimal tree stays feasible for the next cost (a warm start). Flows are integers in units of 2^-60 of the
// total mass, so pivots are exact. Ties are broken by Cunningham's rule, which excludes cycling.
#pragma once

#include <cstdint>
#include <vector>

#include "interrupt.hpp"
#include "kernels.hpp"
#include "linked_tree.hpp"
#include "mask_tree.hpp"
#include "rules.cuh"

namespace tfgw {

// Non-negative weights as integers that sum to exactly 2^60.
void to_fixed_point(const double* weights, int count, int64_t* out);

// A coupling as the list of its non-zero entries.
struct SparsePlan {
  std::vector<int32_t> row, col;
  std::vector<double> mass;

  int count() const { return int(row.size()); }
  void clear() { resize(0); }
  void reserve(int count) { row.reserve(count), col.reserve(count), mass.reserve(count); }
  void resize(int count) { row.resize(count), col.resize(count), mass.resize(count); }
  bool same_as(const SparsePlan& o) const { return row == o.row && col == o.col && mass == o.mass; }
  void push(int32_t i, int32_t k, double w) { row.push_back(i), col.push_back(k), mass.push_back(w); }
};

class TransportSimplex {
 public:
  // Starts a new problem. `ld` is the stride of its cost matrices (see kernels.hpp).
  void reset(int rows, int cols, int ld, const int64_t* supply, const int64_t* demand);

  // Optimal flow for `cost`, from the last basis, or from a greedy one after `reset`. With `max_sweeps` > 0 it stops
  // after that many sweeps over the costs even if the flow could still improve.
  Outcome solve(const double* cost, Interrupt& interrupt, int max_sweeps = 0);

  // After `solve` reached an optimum: no reduced cost is below the negative of this.
  double tolerance() const { return eps_; }

  // After `solve` reached an optimum for its costs: refines it to a tolerance smaller by about ten digits. Plan and
  // potentials change only if a reduced cost is negative by more than rounding of the cost.
  Outcome refine(Interrupt& interrupt);
  bool is_refined() const { return !subtracted_.empty(); }

  // Arcs that carry flow, after `solve`.
  void flow(SparsePlan& out) const;

  // Whether this much flow on an arc is rounding. Weights are doubles, so row and column sums that should be equal
  // differ in their last bits, and the difference must end up on some arc.
  bool is_rounding(int row, int col, double mass) const;

  const double* row_potentials() const { return u_.data(); }
  const double* col_potentials() const { return v_.data(); }

 private:
  struct Cell {
    int32_t row, col;
    double cost;
  };

  template <class Use>
  auto with_tree(Use use) const;
  template <class Tree>
  Outcome run(Tree& tree, Interrupt& interrupt, int max_sweeps);
  template <class Tree>
  bool pivot_on_candidates(Tree& tree);
  template <class Tree>
  double subtract_potentials(Tree& tree);

  double rounding(double largest) const { return reduced_cost_rounding(rows_, cols_) * largest; }

  std::vector<Arc> greedy_basis();
  std::vector<int32_t> by_regret(const Matrix& cost) const;

  int rows_ = 0, cols_ = 0, ld_ = 0;
  bool has_basis_ = false, pivoted_ = false;
  const double* given_ = nullptr;  // the costs to be minimised
  const double* cost_ = nullptr;   // the costs to be priced: given or, while refining, minus `subtracted_`
  double eps_ = 0;
  std::vector<int64_t> supply_, demand_;
  mutable MaskTree<1> narrow_;
  mutable MaskTree<2> medium_;
  mutable MaskTree<4> wide_;
  mutable LinkedTree widest_;
  std::vector<double> u_, v_;
  std::vector<std::vector<double>> subtracted_;  // potentials of rows and columns
  Matrix relative_, reduced_, lowest_;
  Aligned<int64_t> lowest_row_;
  std::vector<Cell> candidates_;
};

}  // namespace tfgw

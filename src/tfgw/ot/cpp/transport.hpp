// Exact linear optimal transport: primal network simplex on the complete bipartite graph rows × columns.
//
// The basis is a spanning tree, kept between calls: marginals do not change from one Frank-Wolfe iteration to the
// next, so the last optimal tree stays feasible for the next cost (a warm start). Flows are integers in units of
// 2^-60 of the total mass, so pivots are exact. Ties are broken by Cunningham's rule, which keeps the tree strongly
// feasible (every tree arc without flow points towards the root) and thereby excludes cycling.
#pragma once

#include <cstdint>
#include <vector>

#include "interrupt.hpp"

namespace tfgw {

constexpr int kMassBits = 60;
constexpr double kMassUnit = 1.0 / double(int64_t(1) << kMassBits);

// Non-negative weights as integers that sum to exactly 2^60.
void to_fixed_point(const double* weights, int count, int64_t* out);

// A coupling as the list of its non-zero entries.
struct SparsePlan {
  std::vector<int32_t> row, col;
  std::vector<double> mass;

  int count() const { return int(row.size()); }
  void clear() { row.clear(), col.clear(), mass.clear(); }
  bool same_as(const SparsePlan& o) const { return row == o.row && col == o.col && mass == o.mass; }
  void push(int32_t i, int32_t k, double w) { row.push_back(i), col.push_back(k), mass.push_back(w); }
};

class TransportSimplex {
 public:
  // A new problem. `ld` is the stride of the cost matrices to come (see kernels.hpp).
  void reset(int rows, int cols, int ld, const int64_t* supply, const int64_t* demand);

  // Optimal flow for `cost`, from the last basis, or from a greedy one after `reset`. False if interrupted.
  bool solve(const double* cost, Interrupt& interrupt);

  // Arcs that carry flow, after `solve`.
  void flow(SparsePlan& out) const;

  const double* row_potentials() const { return u_.data(); }
  const double* col_potentials() const { return v_.data(); }
  int64_t pivots() const { return pivots_; }

 private:
  // A node's link to its parent carries `flow`, from row to column. Children form a doubly linked list.
  struct Node {
    int32_t parent, depth, child, next, prev;
    int64_t flow;
  };

  struct Cell {
    int32_t row, col;
  };

  void build_greedy_basis(const double* cost);
  std::vector<double> centred(const double* cost) const;
  std::vector<int32_t> by_regret(const std::vector<double>& cost) const;
  void hang_tree(const std::vector<int32_t>& row, const std::vector<int32_t>& col, const std::vector<int64_t>& flow);
  void compute_potentials();
  double reduced_cost(int row, int col) const { return cost_[int64_t(row) * ld_ + col] - u_[row] - v_[col]; }
  bool pivot_on_candidates();
  void pivot(int row, int col);
  int push_flow_around_cycle(int row, int col, int64_t& pushed);
  void rehang(int top, int in, int out, int64_t flow);
  void shift_subtree(int top, double row_shift);
  int next_in_subtree(int node, int top) const;
  void attach(int node, int parent);
  void detach(int node);
  bool is_row(int node) const { return node < rows_; }

  int rows_ = 0, cols_ = 0, ld_ = 0;
  bool has_basis_ = false;
  const double* cost_ = nullptr;
  double eps_ = 0;
  int64_t pivots_ = 0;
  std::vector<int64_t> supply_, demand_;
  std::vector<Node> tree_;  // rows first, then columns; the root is the last column
  std::vector<double> u_, v_, best_;
  std::vector<int64_t> best_row_;
  std::vector<Cell> candidates_;
};

}  // namespace tfgw

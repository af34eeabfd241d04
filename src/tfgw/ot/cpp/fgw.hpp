// Fused Gromov-Wasserstein between one graph and one template: fully corrective Frank-Wolfe.
//
//   E(T) = α (hᵀC²h + h̄ᵀC̄²h̄ − 2⟨T, X(T)⟩) + (1−α)⟨M, T⟩,   X(T) = ½(C T C̄ᵀ + Cᵀ T C̄),   M_ik = |f_i − f̄_k|²
//
// is the paper's equation 1 on couplings T ∈ U(h, h̄). Up to terms that are constant on U(h, h̄), its gradient is
// (1−α) M − 4α X(T). Each iteration solves the linear problem for that gradient (transport.hpp) and then minimises E
// over the convex hull of the vertices in use (simplex_qp.hpp). X is linear and a vertex has at most n+m−1 entries,
// so X(T) is a combination of stored X(vertex), each at the cost of a sparse product.
#pragma once

#include <cstdint>
#include <vector>

#include "cross.hpp"
#include "exchange.hpp"
#include "interrupt.hpp"
#include "lower_bound.hpp"
#include "perturb.hpp"
#include "problem.hpp"
#include "starts.hpp"
#include "transport.hpp"

namespace tfgw {

struct SolveOptions {
  int max_iter = 1000;
  double tol = 1e-9;
  int starts = 1;
  int kinds = kUniform | kAnchored | kPerturbed;  // of starts, at least one; kPerturbed alone needs a given start
};

// The linear part of the objective: squared feature distances, or a cost given by the caller.
struct LinearCost {
  int64_t features = 0;
  const double* given = nullptr;  // cost of (i, k) at given[i * stride + k], by original template node
  int64_t stride = 0;
};

struct PairResult {
  double distance = 0, structure_cost = 0, feature_cost = 0, gap = 0;
  int32_t iterations = 0;
  Status status = Status::converged;
  double spread = 0;  // between the highest and the lowest final value of all starts
};

// Destination of one pair's plan and potentials, in the caller's layout; null pointers are not written.
struct PairOutput {
  SparsePlan* plan = nullptr;   // row by row, columns are original template nodes in order
  double* row_potential = nullptr;
  int64_t row_stride = 0;
  double* col_potential = nullptr;
};

// Solves one pair at a time and reuses its buffers: one solver per thread.
class FgwSolver {
 public:
  // `start`, if not null, is a dense coupling that replaces hh̄ᵀ as the first start, with row i at
  // start + i * start_stride, by original template node. Keeps the best of all starts. Returns false if interrupted.
  bool solve(const Graph& graph, const Template& tmpl, const LinearCost& linear, const SolveOptions& options,
             const double* start, int64_t start_stride, Interrupt& interrupt, PairResult& result);

  // After `bind`: keeps a dense coupling of the same layout as `start`, as if it were the result of `solve`.
  void keep_given(const double* plan, int64_t stride);

  // After `solve` or `keep_given`: whether neither the gradient nor an exchange of two entries gives a descent from the kept plan.
  bool is_local_minimum(const PairResult& result);

  // Selects the pair for `lower_bound`; `solve` does the same.
  void bind(const Graph& graph, const Template& tmpl, const LinearCost& linear);

  // After `bind` or `solve`: a lower bound over all couplings (lower_bound.hpp). Returns false if interrupted.
  bool lower_bound(const StructureProfiles& graph, const StructureProfiles& tmpl, Interrupt& interrupt, double& bound);

  void write(const TemplatesInput& templates, int64_t k, const PairOutput& out);

 private:
  struct Atom {
    SparsePlan plan;            // empty stands for hh̄ᵀ
    Matrix cross;               // X(plan): (n, ld)
  };

  bool descend(int ties, const SolveOptions& options, Interrupt& interrupt, PairResult& result);
  bool improve(const SolveOptions& options, Interrupt& interrupt, PairResult& result);
  Exchange find_exchange(const SparsePlan& plan, double value) const;
  bool product_says_nothing();
  void restart_from(SparsePlan plan);
  void build_linear_cost();
  void add_atom();          // from the plan in atoms_[count_]
  void add_located_atom();  // the same, where entries_ is known
  bool solve_linear(Interrupt& interrupt, PairResult& result);
  template <class Negligible>
  bool refine(Negligible negligible, Interrupt& interrupt);
  double negligible_cost(const SparsePlan& plan) const;
  void drop_rounding(SparsePlan& plan) const;
  void product_start();
  SparsePlan product_plan() const;
  bool start_from_cost(StartKind kind, int s, Interrupt& interrupt);
  const std::vector<int32_t>& places();
  void line_search(double gap, double curvature);
  void correct();
  void drop_unused_atoms();
  void merge(SparsePlan& out);
  void collapse();
  void keep();
  void rebuild_gradient();
  const double* tie_broken_gradient(int start, Interrupt& interrupt);
  void split_costs(PairResult& result);
  double squared_distance(int i, const double* f, int64_t step) const;
  double given_cost(int i, int64_t node) const { return linear_source_.given[i * linear_source_.stride + node]; }
  double structure_scale() const { return alpha_ * (graph_->constant + tmpl_->constant); }
  double quadratic(int s) const;  // ⟨plan_s, X(T)⟩
  void sorted_plan(SparsePlan& out);
  double dead_potential(const TemplatesInput& templates, int64_t k, int64_t node);

  const Graph* graph_ = nullptr;
  const Template* tmpl_ = nullptr;
  LinearCost linear_source_;
  int n_ = 0, m_ = 0, ld_ = 0;
  double alpha_ = 0;
  TransportSimplex transport_;
  CrossOperator cross_;
  Matrix linear_cost_;               // (1−α) M: (n, ld)
  Matrix gradient_, tie_broken_, similarity_;
  std::vector<double> scratch_;
  std::vector<Atom> atoms_;
  std::vector<double> weights_, Q_, linear_;
  std::vector<int64_t> entries_;  // places of the newest vertex's entries in a matrix
  int count_ = 0;
  int anchored_ = 0;  // number of starts so far that pinned a link
  LowestMinima minima_;
  std::vector<int32_t> places_;  // of the graph's nodes in the order of perturb.hpp
  SparsePlan best_plan_;
  Csr rows_;  // of the kept plan
  std::vector<double> best_u_, best_v_;
};

}  // namespace tfgw

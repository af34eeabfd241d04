// The operator X(T) = ½(C T C̄ᵀ + Cᵀ T C̄) of one pair. It is linear and symmetric: ⟨A, X(B)⟩ = ⟨X(A), B⟩.
#pragma once

#include <vector>

#include "kernels.hpp"
#include "problem.hpp"
#include "transport.hpp"

namespace tfgw {

// The entries of a plan, row by row. Those of one row keep their order, so columns need not be sorted.
void sort_by_row(const SparsePlan& plan, int rows, Csr& out);

class CrossOperator {
 public:
  void bind(const Graph& graph, const Template& tmpl) { graph_ = &graph, tmpl_ = &tmpl; }

  // X of a plan with few entries: (n, ld)
  void apply(const SparsePlan& plan, Matrix& out);

  // X of a full (n, ld) matrix
  void apply(const Matrix& matrix, Matrix& out);

 private:
  template <class Half>
  void both_halves(Half half, Matrix& out);
  void plan_half(const SparsePlan& plan, bool transposed, const Matrix& table, Matrix& out);
  void structure_times(bool transposed, const Matrix& y, Matrix& out);

  const Graph* graph_ = nullptr;
  const Template* tmpl_ = nullptr;
  Matrix scratch_, half_;
};

}  // namespace tfgw

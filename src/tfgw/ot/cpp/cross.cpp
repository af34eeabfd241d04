#include "cross.hpp"

#include "kernels.hpp"

namespace tfgw {

void sort_by_row(const SparsePlan& plan, int rows, Csr& out) {
  out.ptr.assign(rows + 2, 0);  // while entries are placed, ptr[i + 1] is the position of the next entry of row i
  out.col.resize(plan.count());
  out.value.resize(plan.count());
  for (int32_t i : plan.row) ++out.ptr[i + 2];
  for (int i = 0; i < rows; ++i) out.ptr[i + 2] += out.ptr[i + 1];
  for (int e = 0; e < plan.count(); ++e) {
    const int64_t to = out.ptr[plan.row[e] + 1]++;
    out.col[to] = plan.col[e];
    out.value[to] = plan.mass[e];
  }
}

void CrossOperator::apply(const SparsePlan& plan, Matrix& out) {
  both_halves([&](bool transposed, const Matrix& table,
                  Matrix& to) { plan_half(plan, transposed, table, to); },
              out);
}

void CrossOperator::apply(const Matrix& matrix, Matrix& out) {
  scratch_.resize(matrix.size());
  const auto half = [&](bool transposed, const Matrix& table, Matrix& to) {
    kernels().dense_times(graph_->n, tmpl_->m, tmpl_->ld, matrix.data(), tmpl_->ld, 1, table.data(),
                          scratch_.data());
    structure_times(transposed, scratch_, to);
  };
  both_halves(half, out);
}

// If C is symmetric, ⟨T, C T C̄⟩ depends only on the symmetric part of C̄, and one product is enough.
template <class Half>
void CrossOperator::both_halves(Half half, Matrix& out) {
  out.resize(size_t(graph_->n) * tmpl_->ld);
  if (graph_->symmetric) return half(false, tmpl_->mean, out);
  half(false, tmpl_->Ct, out);
  half_.resize(out.size());
  half(true, tmpl_->C, half_);
  for (size_t e = 0; e < out.size(); ++e) out[e] = 0.5 * (out[e] + half_[e]);
}

// C · plan · table, or with Cᵀ. A sparse C is multiplied last, a dense one first: n (n + m) operations, not n² m.
void CrossOperator::plan_half(const SparsePlan& plan, bool transposed, const Matrix& table,
                              Matrix& out) {
  const int n = graph_->n, m = tmpl_->m, ld = tmpl_->ld;
  if (graph_->kind == StructureKind::sparse) {
    scratch_.resize(out.size());
    kernels().plan_times(n, ld, plan.count(), plan.row.data(), plan.col.data(), plan.mass.data(), table.data(),
                         scratch_.data());
    return structure_times(transposed, scratch_, out);
  }
  scratch_.assign(size_t(m) * n, 0.0);
  const double* C = graph_->dense;
  for (int e = 0; e < plan.count(); ++e) {
    double* z = &scratch_[size_t(plan.col[e]) * n];
    const double w = plan.mass[e];
    const int64_t j = plan.row[e];
    if (transposed || graph_->symmetric) {
      for (int i = 0; i < n; ++i) z[i] += w * C[j * n + i];
    } else {
      for (int i = 0; i < n; ++i) z[i] += w * C[int64_t(i) * n + j];
    }
  }
  kernels().dense_times(n, m, ld, scratch_.data(), 1, n, table.data(), out.data());
}

// out = C · y, or Cᵀ · y
void CrossOperator::structure_times(bool transposed, const Matrix& y, Matrix& out) {
  const int n = graph_->n, ld = tmpl_->ld;
  if (graph_->kind == StructureKind::sparse) {
    const Csr& C = transposed ? graph_->Ct : graph_->C;
    kernels().csr_times(n, ld, C.ptr.data(), C.col.data(), C.value.data(), y.data(), out.data());
  } else {
    kernels().dense_times(n, n, ld, graph_->dense, transposed ? 1 : n, transposed ? n : 1, y.data(), out.data());
  }
}

}  // namespace tfgw

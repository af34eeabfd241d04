// The operator X(T) = ½(C T C̄ᵀ + Cᵀ T C̄) of one pair, on (n, P) matrices: the counterpart of cpp/cross.cpp.
#pragma once

#include "tree.cuh"

namespace tfgw {

// A vertex of the coupling polytope: `leaves` rows with one entry each, then the entries of the other rows.
struct VertexPlan {
  ArcCount count;
  int *row, *col;
  double* mass;
};

template <int P>
class CrossOperator {
  using S = Shape<P>;

 public:
  TFGW_DEVICE CrossOperator(const Problem& p, const GraphView& graph, int k, int cols, double* scratch, double* half)
      : p_(p), graph_(graph), cols_(cols), scratch_(scratch), half_(half) {
    const i64 at = i64(k) * P * P;
    C_ = p.C + at, Ct_ = p.Ct + at, mean_ = p.mean + at;
  }

  TFGW_DEVICE void apply(const VertexPlan& plan, double* out) {
    each_half([&](const double* table, bool transposed) {
      if (graph_.sparse) return gather(plan, table);
      dense_times(plan, transposed);
    }, out);
  }

  TFGW_DEVICE void apply(const double* matrix, double* out) {
    each_half([&](const double* table, bool) { times_table(matrix, P, 1, table, scratch_); }, out, true);
  }

 private:
  // Where C is symmetric, ⟨T, C T C̄⟩ sees only the symmetric part of C̄, and one product does. `first` leaves the product
  // with one factor in `scratch`: with the template's, so that the graph's is still to come, or, for a plan with few
  // entries and a dense C, with the graph's, so that it takes n (n + m) operations and not n² m.
  template <class First>
  TFGW_DEVICE void each_half(First first, double* out, bool structure_last = false) {
    const int halves = graph_.symmetric ? 1 : 2;
    for (int half = 0; half < halves; ++half) {
      const double* table = halves == 1 ? mean_ : half == 0 ? Ct_ : C_;
      double* const to = half == 0 ? out : half_;
      first(table, half == 1);
      sync();
      if (graph_.sparse || structure_last) {
        structure_times(half == 1, scratch_, to);
      } else {
        times_table(scratch_, 1, graph_.n, table, to);
      }
      sync();
    }
    if (halves == 1) return;
    for (int e = lane(); e < graph_.n * P; e += 32) out[e] = 0.5 * (out[e] + half_[e]);
    sync();
  }

  // scratch[k, i] = (C · plan)[i, k], or with Cᵀ
  TFGW_DEVICE void dense_times(const VertexPlan& plan, bool transposed) {
    const int n = graph_.n;
    for (int e = lane(); e < n * cols_; e += 32) scratch_[e] = 0;
    sync();
    const bool by_row = transposed || graph_.symmetric;
    for (int e = 0; e < plan.count.all; ++e) {
      const double w = plan.mass[e];
      const i64 j = plan.row[e];
      double* z = scratch_ + i64(plan.col[e]) * n;
      for (int i = lane(); i < n; i += 32) z[i] += w * graph_.dense[by_row ? j * n + i : i64(i) * n + j];
    }
  }

  // scratch[row, :] = Σ mass · table[col, :] over the plan's entries of the row
  TFGW_DEVICE void gather(const VertexPlan& plan, const double* table) {
    for (int e = my_row(); e < plan.count.leaves; e += S::kRowsAtOnce) {
      const double w = plan.mass[e];
      const double* from = table + plan.col[e] * P + my_column();
      double* to = scratch_ + i64(plan.row[e]) * P + my_column();
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) to[32 * q] = w * from[32 * q];
    }
    if (my_row() > 0) return;
    for (int e = plan.count.leaves; e < plan.count.all; ++e)
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) scratch_[i64(plan.row[e]) * P + my_column() + 32 * q] = 0;
    for (int e = plan.count.leaves; e < plan.count.all; ++e) {
      const double w = plan.mass[e];
      const double* from = table + plan.col[e] * P + my_column();
      double* to = scratch_ + i64(plan.row[e]) * P + my_column();
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) to[32 * q] += w * from[32 * q];
    }
  }

  // out[i, :] = Σ_l a[i · row_step + l · col_step] · table[l, :]
  TFGW_DEVICE void times_table(const double* a, int row_step, int col_step, const double* table, double* out) {
    for (int i = my_row(); i < graph_.n; i += S::kRowsAtOnce) {
      double sum[S::kColumnsPerLane] = {};
#pragma unroll 4
      for (int l = 0; l < cols_; ++l) {
        const double w = a[i64(i) * row_step + i64(l) * col_step];
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q) sum[q] += w * table[l * P + my_column() + 32 * q];
      }
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) out[i64(i) * P + my_column() + 32 * q] = sum[q];
    }
  }

  // out = C · y, or Cᵀ · y
  TFGW_DEVICE void structure_times(bool transposed, const double* y, double* out) {
    const double* mine = y + my_column();
    const int* start = transposed ? p_.t_start : p_.row_start;
    const int* length = transposed ? p_.t_length : p_.row_length;
    const int* column = transposed ? p_.t_column : p_.column;
    const double* value = transposed ? p_.t_value : p_.value;
    for (int i = my_row(); i < graph_.n; i += S::kRowsAtOnce) {
      double sum[S::kColumnsPerLane] = {};
      if (graph_.sparse) {
        const int first = start[graph_.first + i], last = first + length[graph_.first + i];
#pragma unroll 4
        for (int e = first; e < last; ++e) {
          const double c = value[e];
          const double* row = mine + i64(column[e]) * P;
#pragma unroll
          for (int q = 0; q < S::kColumnsPerLane; ++q) sum[q] += c * row[32 * q];
        }
      } else {
        const i64 row_step = transposed ? 1 : graph_.n, col_step = transposed ? graph_.n : 1;
#pragma unroll 4
        for (int j = 0; j < graph_.n; ++j) {
          const double c = graph_.dense[i * row_step + j * col_step];
#pragma unroll
          for (int q = 0; q < S::kColumnsPerLane; ++q) sum[q] += c * mine[i64(j) * P + 32 * q];
        }
      }
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) out[i64(i) * P + my_column() + 32 * q] = sum[q];
    }
  }

  // A row of fewer than 32 columns takes a part of the warp only; the rest works on the next rows.
  TFGW_DEVICE static int my_row() { return P < 32 ? lane() / P : 0; }
  TFGW_DEVICE static int my_column() { return P < 32 ? lane() % P : lane(); }

  const Problem& p_;
  const GraphView graph_;
  const int cols_;
  double *scratch_, *half_;
  const double *C_, *Ct_, *mean_;
};

}  // namespace tfgw

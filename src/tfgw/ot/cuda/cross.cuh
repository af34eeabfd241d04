// The operator X(T) = ½(C T C̄ᵀ + Cᵀ T C̄) of one pair, on (n, P) matrices: the counterpart of cpp/cross.cpp.
#pragma once

#include "bits.cuh"

namespace tfgw {

// A vertex of the coupling polytope: its positive entries, row by row, and where each row begins (rows + 1 numbers; of
// the newest vertex only).
struct VertexPlan {
  int count;
  Entry* entries;
  const int* begin;
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
      if (!graph_.sparse) return dense_times(plan, transposed);
      sparse_times(plan.begin, plan.entries, table, scratch_);
    }, out, graph_.sparse);
  }

  TFGW_DEVICE void apply(const double* matrix, double* out) {
    each_half([&](const double* table, bool) { product(matrix, P, 1, cols_, table, scratch_); }, out, true);
  }

 private:
  // Where C is symmetric, ⟨T, C T C̄⟩ sees only the symmetric part of C̄, and one product does. `first` leaves the product
  // with one factor in `scratch`: with the template's, so that the graph's is still to come, or, for a plan with few
  // entries and a dense C, with the graph's, so that it takes n (n + m) operations and not n² m.
  template <class First>
  TFGW_DEVICE void each_half(First first, double* out, bool structure_last) {
    const int halves = graph_.symmetric ? 1 : 2;
    for (int half = 0; half < halves; ++half) {
      const double* table = halves == 1 ? mean_ : half == 0 ? Ct_ : C_;
      double* const to = half == 0 ? out : half_;
      first(table, half == 1);
      sync();
      if (structure_last) {
        structure_times(half == 1, scratch_, to);
      } else {
        product(scratch_, 1, graph_.n, cols_, table, to);
      }
      sync();
    }
    if (halves == 1) return;
#pragma unroll 1
    for (int e = lane(); e < graph_.n * P; e += 32) out[e] = 0.5 * (out[e] + half_[e]);
    sync();
  }

  // scratch[k, i] = (C · plan)[i, k], or with Cᵀ
  TFGW_DEVICE void dense_times(const VertexPlan& plan, bool transposed) {
    const int n = graph_.n;
#pragma unroll 1
    for (int e = lane(); e < n * cols_; e += 32) scratch_[e] = 0;
    sync();
    const bool by_row = transposed || graph_.symmetric;
#pragma unroll 1
    for (int e = 0; e < plan.count; ++e) {
      const Entry a = plan.entries[e];
      double* z = scratch_ + i64(a.col) * n;
      const i64 at = by_row ? i64(a.row) * n : a.row, step = by_row ? 1 : n;
      for (int i = lane(); i < n; i += 32) z[i] += a.weight * graph_.dense[at + i * step];
    }
  }

  // out = C · y, or Cᵀ · y
  TFGW_DEVICE void structure_times(bool transposed, const double* y, double* out) {
    if (graph_.dense) {
      const int n = graph_.n;
      return product(graph_.dense, transposed ? 1 : n, transposed ? n : 1, n, y, out);
    }
    sparse_times((transposed ? p_.t_start : p_.row_start) + graph_.first, transposed ? p_.t_entry : p_.entry, y, out);
  }

  // out = A · B, A given by its entries, row by row. Several rows at a time, so that many numbers are on their way.
  TFGW_DEVICE void sparse_times(const int* begin, const Entry* entries, const double* B, double* out) {
    constexpr int kRows = 4, kAhead = 2;
    B += my_column(), out += my_column();
    for (int first = my_row(); first < graph_.n; first += kRows * S::kRowsAtOnce) {
      double sum[kRows][S::kColumnsPerLane] = {};
      int at[kRows], end[kRows], longest = 0, some = 0;
#pragma unroll
      for (int s = 0; s < kRows; ++s) {
        const int i = first + s * S::kRowsAtOnce;
        at[s] = i < graph_.n ? begin[i] : 0, end[s] = i < graph_.n ? begin[i + 1] : 0;
        if (end[s] - at[s] > longest) longest = end[s] - at[s], some = at[s];
      }
      for (int done = 0; done < longest; done += kAhead) {
        Entry a[kRows][kAhead];
#pragma unroll
        for (int s = 0; s < kRows; ++s)
#pragma unroll
          for (int d = 0; d < kAhead; ++d) {  // behind a row's end, some entry that will not be used
            const int e = at[s] + done + d;
            a[s][d] = entries[e < end[s] ? e : some];
          }
#pragma unroll
        for (int s = 0; s < kRows; ++s)
#pragma unroll
          for (int d = 0; d < kAhead; ++d) {
            const double* const row = B + a[s][d].col * P;
            const bool there = at[s] + done + d < end[s];
#pragma unroll
            for (int q = 0; q < S::kColumnsPerLane; ++q)
              if (there) sum[s][q] += a[s][d].weight * row[32 * q];
          }
      }
      store_rows(first, sum, out);
    }
  }

  // out[i, :] = Σ_l a[i · row_step + l · col_step] · B[l, :], l < inner
  TFGW_DEVICE void product(const double* a, int row_step, int col_step, int inner, const double* B, double* out) {
    constexpr int kRows = 4;  // that share what is read of B
    B += my_column(), out += my_column();
    for (int first = my_row(); first < graph_.n; first += kRows * S::kRowsAtOnce) {
      double sum[kRows][S::kColumnsPerLane] = {};
      const double* from[kRows];
#pragma unroll
      for (int s = 0; s < kRows; ++s) {
        const int i = first + s * S::kRowsAtOnce;
        from[s] = a + i64(i < graph_.n ? i : first) * row_step;
      }
#pragma unroll 4
      for (int l = 0; l < inner; ++l) {
        double b[S::kColumnsPerLane];
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q) b[q] = B[l * P + 32 * q];
#pragma unroll
        for (int s = 0; s < kRows; ++s) {
          const double w = from[s][i64(l) * col_step];
#pragma unroll
          for (int q = 0; q < S::kColumnsPerLane; ++q) sum[s][q] += w * b[q];
        }
      }
      store_rows(first, sum, out);
    }
  }

  // Of the rows `first`, `first` + kRowsAtOnce, …, those that there are.
  template <int kRows>
  TFGW_DEVICE void store_rows(int first, const double (&sum)[kRows][S::kColumnsPerLane], double* out) const {
#pragma unroll
    for (int s = 0; s < kRows; ++s) {
      const int i = first + s * S::kRowsAtOnce;
      if (i >= graph_.n) break;
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) out[i * P + 32 * q] = sum[s][q];
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

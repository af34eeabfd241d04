// The operator X(T) = ½(C T C̄ᵀ + Cᵀ T C̄) of one pair, on (n, P) matrices: the counterpart of cpp/cross.cpp. Two
// products one after the other, with a meeting between them; in each, every warp of the team has its share of the rows.
#pragma once

#include "bits.cuh"
#include "block.cuh"
#include "team.cuh"

namespace tfgw {

// A vertex of the coupling polytope: for each row, then for each column, the arc to the node above it in the basis, as
// an entry of the plan. Entry n + k is thus further mass of some row; `more[i]` are the columns whose entries are that of
// row i.
template <int P>
struct VertexPlan {
  using More = Bits<(P + 31) / 32>;
  Entry* entries;
  More* more;
};

// Where a graph's structure and the template's table are, if they are near: the same as in Problem, in shared memory.
struct NearStructure {
  double* table;
  Entry* packed;
  int *row, *begin;
  bool has_packed = false;  // else there was no room for the entries

  template <class Arena>
  TFGW_DEVICE void take(Arena& arena, int rows, int cols, int entries, int padded, int groups) {
    has_packed = entries > 0;
    table = arena.template take<double>(cols * padded), packed = arena.template take<Entry>(entries);
    row = arena.template take<int>(rows), begin = arena.template take<int>(groups + 1);
  }
};

// Entries of a structure in groups of rows, with their padding.
template <int P>
TFGW_DEVICE int packed_entries(const Problem& p, const GraphView& graph, int b) {
  const bool packed = graph.sparse && graph.symmetric && !graph.dense;
  return packed ? packed_begin(p, b)[Shape<P>::groups(graph.n)] : 0;
}

// Brings it near.
template <int P, class Team>
TFGW_DEVICE void load_structure(const Problem& p, const GraphView& graph, int b, int k, int cols,
                                const NearStructure& near) {
  if (!has_structure(p)) return;
  const double* const table = p.mean + i64(k) * P * P;
#pragma unroll 4
  for (int e = Team::thread(); e < cols * P; e += Team::kThreads) near.table[e] = read_only(table + e);
  if (graph.dense) return;
  const int groups = Shape<P>::groups(graph.n);
  const int* const begin = packed_begin(p, b);
  for (int g = Team::thread(); g <= groups; g += Team::kThreads) near.begin[g] = read_only(begin + g);
  for (int i = Team::thread(); i < graph.n; i += Team::kThreads) near.row[i] = read_only(p.packed_row + graph.first + i);
  if (!near.has_packed) return;
  const Entry* const packed = p.packed + packed_at(p, graph.first);
  const int count = read_only(begin + groups);
#pragma unroll 4
  for (int e = Team::thread(); e < count; e += Team::kThreads) near.packed[e] = read_only(packed + e);
}

template <int P, class Team, bool kNear>
class CrossOperator {
  using S = Shape<P>;
  static constexpr int kRows = 4, kRowsAtATime = kRows * S::kRowsAtOnce;  // of a product, by one warp

 public:
  TFGW_DEVICE CrossOperator(const Problem& p, const GraphView& graph, int k, int cols, double* scratch, double* half,
                            const NearStructure& near)
      : p_(p), graph_(graph), k_(k), cols_(cols), scratch_(scratch), half_(half), near_(near) {}

  // Where C is symmetric, ⟨T, C T C̄⟩ sees only the symmetric part of C̄, and one product does.
  TFGW_DEVICE int halves() const { return kNear || graph_.symmetric ? 1 : 2; }
  // A plan has few entries: with a dense C first, it takes n (n + m) operations and not n² m.
  TFGW_DEVICE bool structure_first() const { return graph_.dense != nullptr; }

  // scratch = plan · table
  TFGW_DEVICE void plan_times_template(const VertexPlan<P>& plan, int half) {
    constexpr int kAhead = !Team::kAlone ? 4 : P < 32 ? 1 : 2;  // rows that are on their way together
    constexpr int kStep = Team::kSize * S::kRowsAtOnce;
    const double* const B = table(half) + S::my_column();
    double* const out = scratch_ + S::my_column();
#pragma unroll 1
    for (int first = Team::warp() * S::kRowsAtOnce + S::my_row(); first < graph_.n; first += kAhead * kStep) {
      double sum[kAhead][S::kColumnsPerLane];
      typename VertexPlan<P>::More more[kAhead];
#pragma unroll
      for (int s = 0; s < kAhead; ++s) {
        const int i = first + s * kStep < graph_.n ? first + s * kStep : first;
        const Entry a = plan.entries[i];
        more[s] = plan.more[i];
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q) sum[s][q] = a.weight * B[a.col * P + 32 * q];
      }
#pragma unroll
      for (int s = 0; s < kAhead; ++s) {
#pragma unroll
        for (int w = 0; w < (P + 31) / 32; ++w)
#pragma unroll 1
          for (u32 left = more[s].word[w]; left; left &= left - 1) {
            const int k = 32 * w + lowest_bit(left);
            const double mass = plan.entries[graph_.n + k].weight;
#pragma unroll
            for (int q = 0; q < S::kColumnsPerLane; ++q) sum[s][q] += mass * B[k * P + 32 * q];
          }
        if (first + s * kStep >= graph_.n) continue;
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q) out[(first + s * kStep) * P + 32 * q] = sum[s][q];
      }
    }
  }

  // scratch = matrix · table
  TFGW_DEVICE void matrix_times_template(const double* matrix, int half) {
    product(matrix, P, 1, cols_, table(half), scratch_, nullptr);
  }

  // scratch[k, i] = (C · plan)[i, k], or with Cᵀ. Where there are threads enough, two share a row; `other` is a matrix for
  // what the second one finds.
  TFGW_DEVICE void structure_times_plan(const VertexPlan<P>& plan, int half, double* other) {
    const int n = graph_.n, parts = 2 * n <= Team::kThreads ? 2 : 1;
    const bool by_row = half == 1 || graph_.symmetric;
    struct Term {
      double value;
      int col;
    };
    const int part = parts == 1 ? 0 : Team::thread() / (Team::kThreads / 2);
    double* const to = part == 0 ? scratch_ : other;
#pragma unroll 1
    for (int i = Team::thread() % (Team::kThreads / parts); i < n; i += Team::kThreads) {
#pragma unroll 1
      for (int k = 0; k < cols_; ++k) to[k * n + i] = 0;
      const auto term = [&](int e) {
        const Entry a = plan.entries[e];
        const double c = read_only(graph_.dense + (by_row ? i64(a.row) * n + i : i64(i) * n + a.row));
        return Term{a.weight * c, a.col};
      };
      ahead<8>(part, n + cols_, parts, term, [&](int, const Term& t) { to[t.col * n + i] += t.value; });
    }
    if (parts == 1) return;
    Team::meet();
#pragma unroll 1
    for (int e = Team::thread(); e < n * cols_; e += Team::kThreads) scratch_[e] += other[e];
  }

  // out = C · scratch, or Cᵀ · scratch. The same goes to `kept`, if there is such a matrix.
  TFGW_DEVICE void structure_times(int half, double* out, double* kept) {
    if (graph_.dense) {
      const int n = graph_.n;
      return product(graph_.dense, half == 1 ? 1 : n, half == 1 ? n : 1, n, scratch_, to(half, out), kept);
    }
    if constexpr (kNear) {
      packed_times(out, kept);
    } else {
      sparse_times((half == 1 ? p_.t_start : p_.row_start) + graph_.first, half == 1 ? p_.t_entry : p_.entry,
                   to(half, out), kept);
    }
  }

  // out = scratchᵀ · table, and `kept` as above.
  TFGW_DEVICE void times_template(int half, double* out, double* kept) {
    product(scratch_, 1, graph_.n, cols_, table(half), to(half, out), kept);
  }

  // Both halves are there.
  TFGW_DEVICE void average(double* out) {
#pragma unroll 1
    for (int e = Team::thread(); e < graph_.n * P; e += Team::kThreads) out[e] = 0.5 * (out[e] + half_[e]);
  }

 private:
  TFGW_DEVICE double* to(int half, double* out) const { return kNear || half == 0 ? out : half_; }

  TFGW_DEVICE const double* table(int half) const {
    if constexpr (kNear) return near_.table;
    return (graph_.symmetric ? p_.mean : half == 0 ? p_.Ct : p_.C) + i64(k_) * P * P;
  }

  // out = C · scratch, rows in groups of about equal length.
  TFGW_DEVICE void packed_times(double* out, double* kept) {
    const double* const B = scratch_ + S::my_column();
    const int groups = S::groups(graph_.n);
    const Entry* const far = p_.packed + packed_at(p_, graph_.first);
#pragma unroll 1
    for (int g = Team::warp(); g < groups; g += Team::kSize) {
      constexpr int kGroup = S::kGroup, kGroupRows = kGroup / S::kRowsAtOnce;
      double sum[kGroupRows] = {};
      const int begin = near_.begin[g], end = near_.begin[g + 1];
#pragma unroll 1
      for (int e = begin; e < end; e += kGroup)
#pragma unroll
        for (int s = 0; s < kGroupRows; ++s) {
          const int at = e + s * S::kRowsAtOnce + S::my_row();
          const Entry a = near_.has_packed ? near_.packed[at] : read_only(far + at);
          sum[s] += a.weight * B[a.col * P];
        }
#pragma unroll
      for (int s = 0; s < kGroupRows; ++s) {
        const int at = g * kGroup + S::my_row() + s * S::kRowsAtOnce;
        if (at >= graph_.n) break;
        const int e = near_.row[at] * P + S::my_column();
        out[e] = sum[s];
        if (kept) kept[e] = sum[s];
      }
    }
  }

  // out = A · scratch, A given by its entries, row by row. Several rows at a time: many numbers are on their way.
  TFGW_DEVICE void sparse_times(const int* begin, const Entry* entries, double* out, double* kept) {
    constexpr int kAhead = 2;
    const double* const B = scratch_ + S::my_column();
#pragma unroll 1
    for (int first = first_row(); first < graph_.n; first += kRowsAtATime * Team::kSize) {
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
      store_rows(first, sum, out, kept);
    }
  }

  // out[i, :] = Σ_l a[i · row_step + l · col_step] · B[l, :], l < inner
  TFGW_DEVICE void product(const double* a, int row_step, int col_step, int inner, const double* B, double* out,
                           double* kept) {
    B += S::my_column();
#pragma unroll 1
    for (int first = first_row(); first < graph_.n; first += kRowsAtATime * Team::kSize) {
      double sum[kRows][S::kColumnsPerLane] = {};
      const double* from[kRows];
#pragma unroll
      for (int s = 0; s < kRows; ++s) {
        const int i = first + s * S::kRowsAtOnce;
        from[s] = a + offset(i < graph_.n ? i : first, row_step);
      }
#pragma unroll 4
      for (int l = 0; l < inner; ++l) {
        double b[S::kColumnsPerLane];
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q) b[q] = B[l * P + 32 * q];
#pragma unroll
        for (int s = 0; s < kRows; ++s) {
          const double w = from[s][offset(l, col_step)];
#pragma unroll
          for (int q = 0; q < S::kColumnsPerLane; ++q) sum[s][q] += w * b[q];
        }
      }
      store_rows(first, sum, out, kept);
    }
  }

  // Of the rows `first`, `first` + kRowsAtOnce, …, those that there are.
  TFGW_DEVICE void store_rows(int first, const double (&sum)[kRows][S::kColumnsPerLane], double* out,
                              double* kept) const {
#pragma unroll
    for (int s = 0; s < kRows; ++s) {
      const int i = first + s * S::kRowsAtOnce;
      if (i >= graph_.n) break;
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) {
        const int e = i * P + S::my_column() + 32 * q;
        out[e] = sum[s][q];
        if (kept) kept[e] = sum[s][q];
      }
    }
  }

  // A matrix that is near is small.
  TFGW_DEVICE static auto offset(int count, int step) {
    if constexpr (kNear) return count * step;
    else return i64(count) * step;
  }

  TFGW_DEVICE static int first_row() { return Team::warp() * kRowsAtATime + S::my_row(); }

  const Problem& p_;
  const GraphView graph_;
  const int k_, cols_;
  double* const scratch_;
  double* const half_;
  const NearStructure near_;
};

}  // namespace tfgw

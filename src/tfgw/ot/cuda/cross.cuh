// The operator X(T) = ½(C T C̄ᵀ + Cᵀ T C̄) of one pair, on (n, P) matrices: the counterpart of cpp/cross.cpp. Two
// products with a barrier between them; in each, every warp of the team has its share of the rows.
#pragma once

#include "bits.cuh"
#include "block.cuh"
#include "matrix_product.cuh"

namespace tfgw {

// A graph's structure and the template's table in shared memory, in the format of Problem.
struct SharedStructure {
  double* table;            // not used if it stays in global memory
  Entry* packed;
  int *row, *begin;
  bool has_packed = false;  // false if the entries did not fit
  int* place = nullptr;     // index of each row in `row`, for products with plans

  template <class Arena>
  TFGW_DEVICE void take(Arena& arena, int rows, int cols, int entries, int pitch, int groups) {
    has_packed = entries > 0;
    table = arena.template take<double>(cols * pitch), packed = arena.template take<Entry>(entries);
    row = arena.template take<int>(rows), begin = arena.template take<int>(groups + 1);
  }
};

// Number of entries of a structure in the packed format, with padding.
template <int P>
TFGW_DEVICE int packed_entries(const Problem& p, const GraphView& graph, int b) {
  const bool packed = graph.sparse && graph.symmetric && !graph.dense;
  return packed ? packed_begin(p, b)[Shape<P>::groups(graph.n)] : 0;
}

// Copies the structure to shared memory, without the table unless `kTable`. Complete after `wait_for_copies` and a
// barrier.
template <int P, class Team, bool kTable>
TFGW_DEVICE void load_structure(const Problem& p, const GraphView& graph, int b, int k, int cols,
                                const SharedStructure& shared) {
  if (!has_structure(p)) return;
  if constexpr (kTable) {
    const double* const table = p.mean + i64(k) * P * P;
#pragma unroll 1
    for (int e = 2 * Team::thread(); e < cols * P; e += 2 * Team::kThreads)
      copy_async(as_double2(shared.table + e / P * kPitch<P> + e % P), as_double2(table + e));
  }
  if (graph.dense) return;
  const int groups = Shape<P>::groups(graph.n);
  const int* const begin = packed_begin(p, b);
#pragma unroll 1
  for (int g = Team::thread(); g <= groups; g += Team::kThreads) copy_async(shared.begin + g, begin + g);
#pragma unroll 1
  for (int i = Team::thread(); i < graph.n; i += Team::kThreads)
    copy_async(shared.row + i, p.packed_row + graph.first + i);
  if (!shared.has_packed) return;
  const Entry* const packed = p.packed + packed_at(p, graph.first);
  const int count = read_only(begin + groups);
#pragma unroll 1
  for (int e = Team::thread(); e < count; e += Team::kThreads) copy_async(shared.packed + e, packed + e);
}

template <int P, class Team, bool kShared, bool kTable = kShared>
class CrossOperator {
  using S = Shape<P>;
  static constexpr int kUnroll = kShared && !kTable ? 4 : 2;  // more loads in flight if the table is far away

 public:
  TFGW_DEVICE CrossOperator(const Problem& p, const GraphView& graph, int k, int cols, double* scratch, double* half,
                            const SharedStructure& shared)
      : p_(p), graph_(graph), k_(k), cols_(cols), scratch_(scratch), half_(half), shared_(shared) {}

  // If C is symmetric, ⟨T, C T C̄⟩ depends only on the symmetric part of C̄, and one product is enough.
  TFGW_DEVICE int halves() const { return kShared || graph_.symmetric ? 1 : 2; }

  // scratch = matrix · table
  TFGW_DEVICE void matrix_times_template(const double* matrix, int half) {
    multiply<P, Team, 2>(matrix, P, 1, graph_.n, cols_, cols_, table(half), scratch(), nullptr);
  }

  // scratch = C · plan, or Cᵀ · plan. The plan is a vertex of the coupling polytope: for each row, then for each column
  // but the last, the arc to its parent in the basis, as an entry. `other` is scratch memory for a matrix.
  TFGW_DEVICE void structure_times_plan(const Entry* plan, int half, double* other) {
    if (graph_.dense) return dense_times_plan(plan, half, other);
    if constexpr (kShared) packed_times_plan(plan);
    else sparse_times_plan(plan, half);
  }

  // out = C · scratch, or Cᵀ · scratch.
  TFGW_DEVICE void structure_times(int half, double* out) {
    if (graph_.dense) return dense_times(half, scratch(), {to(half, out), P});
    if constexpr (kShared) {
      packed_times(out);
    } else {
      sparse_times((half == 1 ? p_.t_start : p_.row_start) + graph_.first, half == 1 ? p_.t_entry : p_.entry,
                   to(half, out));
    }
  }

  // out = scratch · table. Also written to `kept`, if not null.
  TFGW_DEVICE void times_template(int half, double* out, double* kept) {
    multiply<P, Team, kUnroll>(scratch_, kPitch<P>, 1, graph_.n, cols_, cols_, table(half), {to(half, out), P}, kept);
  }

  // The mean of both halves.
  TFGW_DEVICE void average(double* out) {
#pragma unroll 1
    for (int e = Team::thread(); e < graph_.n * P; e += Team::kThreads) out[e] = 0.5 * (out[e] + half_[e]);
  }

 private:
  TFGW_DEVICE double* to(int half, double* out) const { return kShared || half == 0 ? out : half_; }

  TFGW_DEVICE Rows table(int half) const {
    if constexpr (kTable) return {shared_.table, kPitch<P>};
    return {(graph_.symmetric ? p_.mean : half == 0 ? p_.Ct : p_.C) + i64(k_) * P * P, P};
  }
  TFGW_DEVICE const Entry* global_entries() const {  // if they are not in shared memory
    return shared_.has_packed ? nullptr : p_.packed + packed_at(p_, graph_.first);
  }
  TFGW_DEVICE Rows scratch() const { return {scratch_, kPitch<P>}; }

  TFGW_DEVICE void clear(double* matrix, int pitch) {
#pragma unroll 4
    for (int e = 2 * Team::thread(); e < graph_.n * pitch; e += 2 * Team::kThreads) *as_double2(matrix + e) = {};
  }

  // The entries of a row of C: at first, first + step, … before end. Padding entries have no weight.
  struct Neighbours {
    int first, end, step;
  };

  // Adds to row i of `scratch` the products with the parent arcs of its neighbours.
  template <class Edge>
  TFGW_DEVICE void add_arcs_of_rows(const Entry* plan, Edge edge, const Neighbours& of, int i) const {
    struct Term {
      double value;
      int col;
    };
    double* const row = scratch_ + i * kPitch<P>;
    const auto term = [&](int e) {
      const Entry seen = edge(e), arc = plan[seen.col];
      return Term{seen.weight * arc.weight, arc.col};
    };
    unrolled<2>(of.first, of.end, of.step, term, [&](int, const Term& t) { row[t.col] += t.value; });
  }

  // Adds to all rows the products with the parent arcs of columns, one thread per column. `of(row)` gives the rows that
  // have `row` as a neighbour.
  template <class Edge, class Of>
  TFGW_DEVICE void add_arcs_of_columns(const Entry* plan, Edge edge, Of of) const {
    struct Term {
      double value, sum;
      int row;
    };
#pragma unroll 1
    for (int k = Team::thread(); k < cols_ - 1; k += Team::kThreads) {
      const Entry arc = plan[graph_.n + k];
      double* const column = scratch_ + k;
      const auto term = [&](int e) {
        const Entry seen = edge(e);
        return Term{seen.weight * arc.weight, column[seen.col * kPitch<P>], seen.col};
      };
      const Neighbours rows = of(arc.row);
      unrolled<2>(rows.first, rows.end, rows.step, term, [&](int, const Term& t) {
        // Padding entries may refer to a row that another entry changes; all others refer to distinct rows.
        if (t.value != 0) column[t.row * kPitch<P>] = t.sum + t.value;
      });
    }
  }

  // The product with a plan if C is a dense matrix.
  TFGW_DEVICE void dense_times_plan(const Entry* plan, int half, double* other) {
    clear(other, P);
    Team::sync();
#pragma unroll 1
    for (int e = Team::thread(); e < graph_.n + cols_ - 1; e += Team::kThreads) {
      const Entry a = plan[e];
      other[a.row * P + a.col] = a.weight;
    }
    Team::sync();
    dense_times(half, {other, P}, scratch());
  }

  // The same if C is in the packed format.
  TFGW_DEVICE void packed_times_plan(const Entry* plan) {
    const Entry* const global = global_entries();
    const auto edge = [&](int e) { return shared_.has_packed ? shared_.packed[e] : read_only(global + e); };
    const auto neighbours = [&](int place) {
      const int g = place / S::kGroup;
      return Neighbours{shared_.begin[g] + place % S::kGroup, shared_.begin[g + 1], S::kGroup};
    };
#pragma unroll 1
    for (int place = Team::thread(); place < graph_.n; place += Team::kThreads) {
      const int i = shared_.row[place];
#pragma unroll 4
      for (int k = 0; k < cols_; k += 2) *as_double2(scratch_ + i * kPitch<P> + k) = {};
      add_arcs_of_rows(plan, edge, neighbours(place), i);
    }
    Team::sync();
    add_arcs_of_columns(plan, edge, [&](int row) { return neighbours(shared_.place[row]); });
  }

  // The same if C is stored as rows of entries.
  TFGW_DEVICE void sparse_times_plan(const Entry* plan, int half) {
    clear(scratch_, kPitch<P>);
    Team::sync();
    const auto entries = [&](bool transposed) {
      const Entry* const all = transposed ? p_.t_entry : p_.entry;
      return [=](int e) { return read_only(all + e); };
    };
    const auto neighbours = [&](bool transposed) {
      const int* const begin = (transposed ? p_.t_start : p_.row_start) + graph_.first;
      return [=](int row) { return Neighbours{begin[row], begin[row + 1], 1}; };
    };
#pragma unroll 1
    for (int i = Team::thread(); i < graph_.n; i += Team::kThreads)
      add_arcs_of_rows(plan, entries(half == 1), neighbours(half == 1)(i), i);
    Team::sync();
    const bool back = !graph_.symmetric && half == 0;  // the neighbours in the transposed direction
    add_arcs_of_columns(plan, entries(back), neighbours(back));
  }

  // out = C · B, or Cᵀ · B, if C is a dense matrix.
  TFGW_DEVICE void dense_times(int half, const Rows& B, const Rows& out) {
    const i64 n = graph_.n;
    const i64 row_step = half == 1 ? 1 : n, col_step = half == 1 ? n : 1;
    multiply<P, Team, 4>(graph_.dense, row_step, col_step, graph_.n, graph_.n, cols_, B, out, nullptr);
  }

  // out = C · scratch, in the packed format.
  TFGW_DEVICE void packed_times(double* out) {
    const double* const B = scratch_ + S::my_column();
    const int groups = S::groups(graph_.n);
    const Entry* const global = global_entries();
#pragma unroll 1
    for (int g = Team::warp(); g < groups; g += Team::kSize) {
      constexpr int kGroup = S::kGroup, kGroupRows = kGroup / S::kRowsAtOnce;
      double sum[kGroupRows] = {};
      const int begin = shared_.begin[g], end = shared_.begin[g + 1];
#pragma unroll 2
      for (int e = begin; e < end; e += kGroup)
#pragma unroll
        for (int s = 0; s < kGroupRows; ++s) {
          const int at = e + s * S::kRowsAtOnce + S::my_row();
          const Entry a = shared_.has_packed ? shared_.packed[at] : read_only(global + at);
          sum[s] += a.weight * B[a.col * kPitch<P>];
        }
#pragma unroll
      for (int s = 0; s < kGroupRows; ++s) {
        const int at = g * kGroup + S::my_row() + s * S::kRowsAtOnce;
        if (at >= graph_.n) break;
        out[shared_.row[at] * P + S::my_column()] = sum[s];
      }
    }
  }

  // out = A · scratch, A given by its entries, row by row. Several rows at a time, to have many loads in flight.
  TFGW_DEVICE void sparse_times(const int* begin, const Entry* entries, double* out) {
    constexpr int kUnroll = 2, kRows = P <= 128 ? 4 : 512 / P, kRowsAtATime = kRows * S::kRowsAtOnce;
    const double* const B = scratch_ + S::my_column();
#pragma unroll 1
    for (int first = Team::warp() * kRowsAtATime + S::my_row(); first < graph_.n; first += kRowsAtATime * Team::kSize) {
      double sum[kRows][S::kColumnsPerLane] = {};
      int at[kRows], end[kRows], longest = 0, some = 0;
#pragma unroll
      for (int s = 0; s < kRows; ++s) {
        const int i = first + s * S::kRowsAtOnce;
        at[s] = i < graph_.n ? begin[i] : 0, end[s] = i < graph_.n ? begin[i + 1] : 0;
        if (end[s] - at[s] > longest) longest = end[s] - at[s], some = at[s];
      }
      for (int done = 0; done < longest; done += kUnroll) {
        Entry a[kRows][kUnroll];
#pragma unroll
        for (int s = 0; s < kRows; ++s)
#pragma unroll
          for (int d = 0; d < kUnroll; ++d) {  // past a row's end, load an entry that is not used
            const int e = at[s] + done + d;
            a[s][d] = entries[e < end[s] ? e : some];
          }
#pragma unroll
        for (int s = 0; s < kRows; ++s)
#pragma unroll
          for (int d = 0; d < kUnroll; ++d) {
            const double* const row = B + a[s][d].col * kPitch<P>;
            const bool there = at[s] + done + d < end[s];
#pragma unroll
            for (int q = 0; q < S::kColumnsPerLane; ++q)
              if (there) sum[s][q] += a[s][d].weight * row[32 * q];
          }
      }
#pragma unroll
      for (int s = 0; s < kRows; ++s) {
        const int i = first + s * S::kRowsAtOnce;
        if (i >= graph_.n) break;
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q) out[i * P + S::my_column() + 32 * q] = sum[s][q];
      }
    }
  }

  const Problem& p_;
  const GraphView& graph_;
  const int k_, cols_;
  double* const scratch_;  // row pitch: kPitch
  double* const half_;
  const SharedStructure shared_;
};

}  // namespace tfgw

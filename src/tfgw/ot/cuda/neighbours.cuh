// A graph's structure, entry by entry, in any of its formats.
#pragma once

#include "block.cuh"
#include "problem.cuh"

namespace tfgw {

class Neighbours {
 public:
  TFGW_DEVICE Neighbours(const Problem& p, const GraphView& graph) : p_(p), graph_(graph) {}

  // visit(j, C_ij) for the stored entries of row i, or with C_ji for those of column i, from number `first` on in steps.
  template <class Visit>
  TFGW_DEVICE void each(int i, bool of_column, int first, int step, Visit visit) const {
    const bool transposed = of_column && !graph_.symmetric;
    if (graph_.sparse) {
      const int node = graph_.first + i;
      const int begin = transposed ? p_.t_start[node] : p_.row_start[node];
      const int end = begin + (transposed ? p_.t_length[node] : p_.row_length[node]);
      const int* const column = transposed ? p_.t_column : p_.column;
      const double* const value = transposed ? p_.t_value : p_.value;
#pragma unroll 1
      for (int e = begin + first; e < end; e += step) visit(read_only(column + e), read_only(value + e));
    } else {
      const i64 n = graph_.n;
#pragma unroll 1
      for (int j = first; j < graph_.n; j += step) {
        const i64 at = transposed ? j * n + i : i * n + j;
        visit(j, read_only(graph_.dense + at));
      }
    }
  }

  // C_ij
  TFGW_DEVICE double at(int i, int j) const {
    if (graph_.dense) return read_only(graph_.dense + i64(i) * graph_.n + j);
    const int begin = p_.row_start[graph_.first + i], end = begin + p_.row_length[graph_.first + i];
    int low = begin, high = end;  // first entry of the row that is not before the column
#pragma unroll 1
    while (low < high) {
      const int middle = (low + high) / 2;
      if (read_only(p_.column + middle) < j) low = middle + 1;
      else high = middle;
    }
    return low < end && read_only(p_.column + low) == j ? read_only(p_.value + low) : 0.0;
  }

  // Σ_j (C_ij + C_ji) x(j), up to a factor of 2.
  template <class X>
  TFGW_DEVICE double both_ways(int i, X x) const {
    double sum = 0;
    add_row(i, false, x, sum);
    if (!graph_.symmetric) add_row(i, true, x, sum);
    return sum;
  }

 private:
  template <class X>
  TFGW_DEVICE void add_row(int i, bool transposed, X x, double& sum) const {
    struct Term {
      double weight, x;
    };
    const auto add = [&](int, const Term& t) { sum += t.weight * t.x; };
    if (graph_.sparse) {
      const int node = graph_.first + i;
      const int begin = transposed ? p_.t_start[node] : p_.row_start[node];
      const int end = begin + (transposed ? p_.t_length[node] : p_.row_length[node]);
      const int* const column = transposed ? p_.t_column : p_.column;
      const double* const value = transposed ? p_.t_value : p_.value;
      unrolled<4>(begin, end, 1, [&](int e) { return Term{read_only(value + e), x(read_only(column + e))}; }, add);
    } else {
      const i64 n = graph_.n;
      const double* const row = graph_.dense + (transposed ? i : i * n);
      const i64 step = transposed ? n : 1;
      unrolled<4>(0, graph_.n, 1, [&](int j) { return Term{read_only(row + j * step), x(j)}; }, add);
    }
  }

  const Problem& p_;
  const GraphView& graph_;
};

}  // namespace tfgw

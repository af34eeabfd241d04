// A graph's structure, entry by entry, in any of its formats.
#pragma once

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
  template <class Number, class X>
  TFGW_DEVICE Number both_ways(int i, X x) const {
    Number sum{};
    each(i, false, 0, 1, [&](int j, double c) { add_product(sum, c, x(j)); });
    if (!graph_.symmetric) each(i, true, 0, 1, [&](int j, double c) { add_product(sum, c, x(j)); });
    return sum;
  }

 private:
  TFGW_DEVICE static void add_product(double& sum, double c, double x) { sum += c * x; }
  TFGW_DEVICE static void add_product(Double2& sum, double c, const Double2& x) { sum.x += c * x.x, sum.y += c * x.y; }

  const Problem& p_;
  const GraphView& graph_;
};

}  // namespace tfgw

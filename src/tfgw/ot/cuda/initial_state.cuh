// The initial state of each pair's solve: written by the kernel `start`, read by the kernel `solve`.
#pragma once

#include "problem.cuh"

namespace tfgw {

// An arc of the first basis. Arcs of the same row are adjacent.
struct alignas(16) Arc {
  i64 flow;
  int row, col;
};

struct InitialState {
  double *linear, *gradient;  // (rows, padded): (1−α) M, and the gradient at the first plan, with its ties broken
  double *given, *cross;      // (rows, padded): the first plan and X of it, if given by the caller
  Arc* arcs;                  // (rows + columns − 1)
  double* costs;              // (1−α)⟨M, T⟩ and ⟨T, X(T)⟩ of the first plan T
};

TFGW_DEVICE InitialState initial_state_of(const Problem& p, const GraphView& graph, int b, int k) {
  const i64 rows = p.nodes * p.templates, pairs = p.graphs * p.templates, pair = b * p.templates + k;
  const i64 first = i64(graph.first) * p.templates + i64(k) * graph.n;  // the pair's first row among those of all pairs
  const i64 matrix = rows * p.padded, at = first * p.padded;
  double* const linear = p.initial_state + at;
  double* const behind = p.initial_state + (p.start ? 4 : 2) * matrix;
  Arc* const arcs = reinterpret_cast<Arc*>(behind) + first + pair * p.padded;
  double* const costs = behind + 2 * (rows + pairs * p.padded) + 2 * pair;
  return {linear, linear + matrix, linear + 2 * matrix, linear + 3 * matrix, arcs, costs};
}

// X(hh̄ᵀ) = ½ (Ch (C̄h̄)ᵀ + Cᵀh (C̄ᵀh̄)ᵀ) of a pair, in one column.
template <int P>
class ProductCross {
 public:
  TFGW_DEVICE ProductCross(const Problem& p, const GraphView& graph, int k, int col)
      : out_(p.out_mean + graph.first), in_(p.in_mean + graph.first),
        t_out_(read_only(p.t_mean_out + i64(k) * P + col)), t_in_(read_only(p.t_mean_in + i64(k) * P + col)) {}
  TFGW_DEVICE double at(int row) const {
    return 0.5 * fma_rn(read_only(out_ + row), t_out_, read_only(in_ + row) * t_in_);
  }

 private:
  const double *const out_, *const in_;
  const double t_out_, t_in_;
};

}  // namespace tfgw

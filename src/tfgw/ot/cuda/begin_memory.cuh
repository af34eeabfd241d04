// Memory and inputs for beginning a start.
#pragma once

#include "neighbours.cuh"
#include "starts_memory.cuh"

namespace tfgw {

// Working memory in which a start begins, of a warp or of all warps of a block.
template <int P>
struct BeginMemory {
  // In doubles, if all of it is in global memory; even.
  TFGW_DEVICE static i64 size(int rows) { return i64(rows) * P + 8 * i64(rows) + 32 + 64 * kBeginWarps; }

  // Of the arrays that may be in shared memory, if one warp begins a start.
  TFGW_DEVICE static i64 shared_bytes(int rows) {
    return bytes_of<Double2>(i64(32)) + 2 * bytes_of<double>(i64(rows)) + bytes_of<int>(i64(rows)) +
           bytes_of<double>(i64(rows) * P);
  }

  template <class Arena>
  TFGW_DEVICE BeginMemory(Arena arena, int rows, int warps) {
    samples = arena.template take<Double2>(32 * warps);
    first.regret = arena.template take<double>(rows), first.supply = arena.template take<i64>(rows);
    first.order = arena.template take<int>(rows);
    cost = arena.template take<double>(rows * P);
    first.centred = reinterpret_cast<u64*>(cost);
    keys = arena.template take_global<double>(3 * i64(rows));
    place = arena.template take_global<int>(rows), patch = arena.template take_global<int>(kPatchNodes);
  }

  Double2* samples;  // (warps, 32): of walks, at the rows that a warp works on
  double* cost;      // (rows, P), in shared memory if it fits
  FirstBasisMemory first;
  double* keys;  // (3, rows)
  int* place;    // (rows): of each node in the order of cpp/perturb.hpp
  int* patch;    // nodes moved by a perturbed start
};

// The properties of a pair that its starts begin with.
template <int P>
struct BeginPair {
  TFGW_DEVICE BeginPair(const Problem& p, const GraphView& graph, int b, int k)
      : p(p), graph(graph), b(b), k(k), n(graph.n), m(p.live_count[k]), alpha(has_structure(p) ? p.alpha[k] : 0.0),
        linear(initial_state_of(p, graph, b, k).linear), neighbours(p, this->graph) {}

  // The gradient at hh̄ᵀ.
  TFGW_DEVICE double product_gradient(const ProductCross<P>& cross, int i, int k) const {
    return linear[i * P + k] + -4 * alpha * cross.at(i);
  }

  const Problem& p;
  const GraphView graph;
  const int b, k, n, m;
  const double alpha;
  const double* const linear;  // (n, P): (1−α) M
  const Neighbours neighbours;
};

// The kind of a start, of the kinds allowed for its pair.
TFGW_DEVICE StartKind kind_of(const Problem& p, double alpha, int kinds, int s) {
  if (s == 0 && p.start) return kGiven;
  return alpha > 0 ? kind_of_start(s, kinds) : kUniform;
}

// The walk of this number on a graph: (nodes, kWalkSamples).
TFGW_DEVICE double* samples_of(const Starts& starts, const GraphView& graph, int walk) {
  return starts.graph_samples + (starts.walks * graph.first + i64(walk) * graph.n) * kWalkSamples;
}

}  // namespace tfgw

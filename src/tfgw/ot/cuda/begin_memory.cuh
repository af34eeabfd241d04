// What a warp needs to begin a start.
#pragma once

#include "neighbours.cuh"
#include "starts_memory.cuh"

namespace tfgw {

// The pinned nodes of the template and of the graph; −1 if there is no second one.
struct PinnedLinks {
  int template_from, template_to, graph_from, graph_to;
};

template <int P>
struct BeginMemory {
  // In doubles, even.
  TFGW_DEVICE static i64 size(int rows) {
    return i64(rows) * P + (2 * kLooks + 4) * i64(rows + P) + 6 * i64(rows) + 32;
  }

  TFGW_DEVICE BeginMemory(char* at, int rows) {
    GlobalArena arena(at);
    graph_looks = arena.take_global<Double2>(i64(rows) * kLooks);
    template_looks = arena.take_global<Double2>(i64(P) * kLooks);
    walks = arena.take_global<Double2>(2 * (rows + P));
    first.regret = arena.take_global<double>(rows), first.supply = arena.take_global<i64>(rows);
    first.centred = arena.take_global<u64>(i64(rows) * P);
    first.order = arena.take_global<int>(rows), place = arena.take_global<int>(rows);
    patch = arena.take_global<int>(kPatch);
  }

  Double2 *graph_looks, *template_looks;  // (kLooks, rows), (kLooks, P): the walks from both pinned nodes
  Double2* walks;                         // (2, rows + P)
  FirstBasisMemory first;
  int* place;                             // (rows): of each node in the order of cpp/perturb.hpp
  int* patch;                             // nodes moved by a perturbed start
};

// A pair as the warp that begins one of its starts sees it.
template <int P>
struct BeginPair {
  TFGW_DEVICE BeginPair(const Problem& p, const GraphView& graph, int b, int k, char* memory)
      : p(p), graph(graph), b(b), k(k), n(graph.n), m(p.live_count[k]), alpha(has_structure(p) ? p.alpha[k] : 0.0),
        linear(initial_state_of(p, graph, b, k).linear), mean(p.mean + i64(k) * P * P), neighbours(p, this->graph),
        at(memory, graph.n) {}

  TFGW_DEVICE double t_h(int l) const { return p.t_h[i64(k) * P + l]; }

  // visit(entry, row, column) for all entries of an (n, P) matrix, of which a lane has the same columns in every row.
  template <class Visit>
  TFGW_DEVICE void each_entry(Visit visit) const {
#pragma unroll 1
    for (int e = lane(); e < n * P; e += 32) visit(e, e / P, e % P);
  }

  const Problem& p;
  const GraphView graph;
  const int b, k, n, m;
  const double alpha;
  const double* const linear;  // (n, P): (1−α) M
  const double* const mean;    // (P, P): of C̄ and its transpose
  const Neighbours neighbours;
  const BeginMemory<P> at;
};

}  // namespace tfgw

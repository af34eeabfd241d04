// The memory of several starts: what the starts of a pair share, and the working memory of one start, all of it global.
#pragma once

#include "first_basis.cuh"
#include "start_rules.cuh"
#include "workspace.cuh"

namespace tfgw {

// A pair, and its part of arrays over the nodes of all pairs.
struct StartedPair {
  i64 index, first_row, rows;
};
TFGW_DEVICE StartedPair started_pair(const Problem& p, const GraphView& graph, int b, int k) {
  return {i64(b) * p.templates + k, i64(graph.first) * p.templates + i64(k) * graph.n, p.nodes * p.templates};
}

TFGW_DEVICE bool has_fresh_kinds(i64 kinds) { return kinds & (kUniform | kAnchored); }
TFGW_DEVICE int round_of(const Starts& starts, int s) { return has_fresh_kinds(starts.kinds) ? s / kStartsPerRound : 0; }

// The number of a start, by its item of the wave.
TFGW_DEVICE int start_at(const Starts& starts, int item) {
  const bool repeats = has_fresh_kinds(starts.kinds);
  if (starts.wave >= 0) return (repeats ? item * kStartsPerRound + kFreshStarts : 1) + int(starts.wave);
  return repeats && (starts.kinds & kPerturbed) ? item / kFreshStarts * kStartsPerRound + item % kFreshStarts : item;
}

// Whether there is no such start, or an earlier one has reached the lowest possible value or solved a linear problem.
TFGW_DEVICE bool is_superfluous(const Starts& starts, const StartedPair& pair, double alpha, int item) {
  const int s = start_at(starts, item);
  return s >= starts.count || read_fresh(&starts.best[pair.index].at_floor) < s || (alpha <= 0 && s > 0);
}

// The cost of a start's first linear problem, its first basis, and its kind.
TFGW_DEVICE double* cost_of(const Problem& p, const Starts& starts, const StartedPair& pair, int item) {
  return starts.cost + (item * pair.rows + pair.first_row) * p.padded;
}
TFGW_DEVICE Arc* arcs_of(const Problem& p, const Starts& starts, const StartedPair& pair, int item) {
  const i64 all = pair.rows + p.graphs * p.templates * p.padded;
  return static_cast<Arc*>(starts.arcs) + item * all + pair.first_row + pair.index * p.padded;
}
TFGW_DEVICE int* kind_at(const Starts& starts, const StartedPair& pair, int item) {
  return starts.kind + pair.index * starts.items + item;
}

// The minima of a round, and the gradients there.
TFGW_DEVICE LowestValues& lowest_of(const Problem& p, const Starts& starts, const StartedPair& pair, int round) {
  return static_cast<LowestValues*>(starts.lowest)[round * p.graphs * p.templates + pair.index];
}
TFGW_DEVICE double* minima_of(const Problem& p, const Starts& starts, const StartedPair& pair, int round) {
  return starts.gradient + (round * pair.rows + pair.first_row) * kKeptMinima * p.padded;
}

// Mass moves from (i, k) and (j, l) to (i, l) and (j, k).
struct Exchange {
  int i, j, k, l;  // i is −1 if there is none
  double mass;
  double curvature;  // a b

  TFGW_DEVICE bool exists() const { return i >= 0; }
};

// Working memory of a start's solve, besides that of any solve (workspace.cuh).
template <int P>
struct StartsMemory {
  // In doubles, even.
  TFGW_DEVICE static i64 size(int rows) { return i64(rows) * P + 8 * i64(rows) + 32; }

  TFGW_DEVICE StartsMemory(char* at, int rows) {
    GlobalArena arena(at);
    plan = arena.take_global<double>(i64(rows) * P);
    column_difference = arena.take_global<double>(rows), row_difference = arena.take_global<double>(rows);
    row_potential = arena.take_global<double>(rows);
    used = arena.take_global<u32>(i64(rows) * Shape<P>::kColumnsPerLane);
    exchange = arena.take_global<Exchange>(1);
  }

  double* plan;                                // (rows, P): where a descent ended
  double *column_difference, *row_difference;  // (rows)
  double* row_potential;                       // (rows)
  u32* used;                                   // (rows, words): columns to which a row of the plan ships
  Exchange* exchange;                          // the exchange that was found
};

}  // namespace tfgw

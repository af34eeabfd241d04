// Sizes and memory layout of everything that a solve needs on a GPU.
#pragma once

#include <array>
#include <optional>

#include "structs.cuh"

namespace tfgw::gpu {

constexpr i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }

// Limits of the kernels. Python reads them from the extension module (backends/cuda/kernel_limits.py).
constexpr std::array<int, 6> kSizeClasses = {16, 32, 64, 128, 256, 512};  // padded numbers of template nodes
constexpr int kLargestForStarts = 128;      // the largest size class with kernels for several starts
constexpr int kLargestForSmallGraphs = 32;  // the largest size class with kernels for many small graphs
constexpr int kOldestGeneration = 8;        // the lowest major version of the compute capability
constexpr i64 kReservedBytes = 1 << 10;     // of shared memory, per block

// The size class of a template; no value if it has too many nodes.
std::optional<int> size_class(i64 columns);

// Working memory of one pair's solve in doubles, an even number: `Workspace::size` of workspace.cuh and, for several
// starts, `StartsMemory::size` of starts_memory.cuh.
i64 workspace_size(i64 rows, i64 padded, bool several = false);

// How many starts a pair has, and how the kernel `starts` divides them into waves.
struct StartCounts {
  // `given` tells whether the first start is at a given plan.
  StartCounts(i64 count, i64 kinds, bool given, bool spreads = false);

  bool several() const { return fresh > 0; }

  i64 count, kinds;
  i64 fresh, rounds;       // as in Starts; 0 if there is a single start that `solve` can begin by itself
  i64 waves;               // of dependent starts
  bool given_and_product;  // whether there are starts at given plans and at hh̄ᵀ
  bool spreads;            // whether to compute the spread of the values of all starts
};

// How the blocks of a solve share a multiprocessor.
struct SolveShape {
  i64 per_processor;  // resident blocks per multiprocessor
  i64 shared;         // bytes of shared memory per block
  std::array<i64, 3> small_graphs;  // largest graphs of which a block solves two, three and four at a time
  i64 start_per_processor, start_shared;  // the same for the kernel `start`
  bool starts_many;   // whether to launch `start_many` instead
  i64 smallest_graphs;  // largest graph that `solve_small` solves; −1 if `solve` solves all
  i64 small_shared;     // bytes of shared memory per block of `solve_small`
};

// Reads only the counts of the problem. `shared` is the shared memory of a multiprocessor in bytes. With several starts,
// blocks have a StartsBlock in addition to the shared memory of the result.
SolveShape solve_shape(const Problem& p, i64 shared, i64 processors, const StartCounts& starts);

// How many of the largest pairs are solved by a whole block each, even if they are small: half the number of blocks, or
// all of it if a block has no room for four average pairs (docs/gpu.md).
i64 team_pairs(const Problem& p, i64 blocks);

// Doubles of working memory for all blocks of `solve`, and then, in the same memory, for those of `solve_small`, on a GPU
// with this many bytes of memory.
i64 scratch_size(const Problem& p, i64 blocks, i64 small_blocks, bool several, i64 memory);

// Doubles of the initial state of all pairs (initial_state.cuh); `start` tells whether there are plans to start from.
i64 beginning_size(i64 graphs, i64 nodes, i64 templates, i64 padded, bool start);

// What the starts of a pair share, and where the kernel `start` writes the initial state at hh̄ᵀ.
struct PlacedStarts {
  Starts starts;
  double* product;
  i64 bytes;
};

// Lays them out from an address on. The counts and the initial state of the problem must be set.
PlacedStarts place_starts(const Problem& p, const StartCounts& starts, i64 address);

// Bytes of dynamic shared memory of a block of `starts_begin` and of `starts_walk`, given that of a multiprocessor.
i64 begin_shared(i64 shared);
i64 walk_shared(i64 shared);

// Calls place(name, member, entries) for each member that kernels prepare. Counts and `padded` must be set.
template <class Place>
void each_prepared(Problem& p, Place place) {
  place("entry", p.entry, p.edges);
  place("t_entry", p.t_entry, p.edges);
  place("packed", p.packed, p.edges + kPackedRows * p.nodes);
  place("full", p.full, kFull * p.edges);
  place("ptr", p.ptr, p.graphs + 1);
  place("graph_of", p.graph_of, p.nodes);
  place("order", p.order, p.graphs);
  place("dense_at", p.dense_at, p.graphs + 1);
  place("row_start", p.row_start, p.nodes + 1);
  place("row_length", p.row_length, p.nodes);
  place("column", p.column, p.edges);
  place("value", p.value, p.edges);
  place("t_start", p.t_start, p.nodes + 1);
  place("t_length", p.t_length, p.nodes);
  place("t_column", p.t_column, p.edges);
  place("t_value", p.t_value, p.edges);
  place("edge_id", p.edge_id, p.edges);
  place("h", p.h, p.nodes);
  place("square", p.square, p.nodes);
  place("out_mean", p.out_mean, p.nodes);
  place("in_mean", p.in_mean, p.nodes);
  place("x_norm", p.x_norm, p.nodes);
  place("supply", p.supply, p.nodes);
  place("constant", p.constant, p.graphs);
  place("symmetric", p.symmetric, p.graphs);
  place("packed_row", p.packed_row, p.nodes);
  place("packed_begin", p.packed_begin, p.nodes + p.graphs + 1);
  const i64 rows = p.templates * p.padded;
  place("live_count", p.live_count, p.templates);
  place("live", p.live, rows);
  place("t_h", p.t_h, rows);
  place("t_mean_out", p.t_mean_out, rows);
  place("t_mean_in", p.t_mean_in, rows);
  place("t_norm", p.t_norm, rows);
  place("demand", p.demand, rows);
  place("C", p.C, rows * p.padded);
  place("Ct", p.Ct, rows * p.padded);
  place("mean", p.mean, rows * p.padded);
  place("ft", p.ft, rows * p.features);
  place("t_square", p.t_square, p.templates * p.columns);
  place("t_constant", p.t_constant, p.templates);
  place("queue", p.queue, kCounters);
}

// Allocates consecutive memory from an address on, in units of 16 bytes.
class Arena {
 public:
  explicit Arena(i64 at) : at_(at) {}
  template <class T>
  void take(T*& member, i64 entries) {
    member = reinterpret_cast<T*>(at_);
    at_ += ceil_div(entries * i64(sizeof(T)), 16) * 16;
  }
  i64 end() const { return at_; }

 private:
  i64 at_;
};

// Places the prepared members from an address on and returns their end.
i64 place_prepared(Problem& p, i64 address);

// The results besides the distances, in the two tensors of solved.py; the second address is 0 if plans are omitted.
void place_results(Problem& p, i64 pairs, i64 plans);
constexpr i64 kPairWords = 4;      // doubles per pair in the first tensor
i64 plan_words(const Problem& p);  // doubles in the second tensor

}  // namespace tfgw::gpu

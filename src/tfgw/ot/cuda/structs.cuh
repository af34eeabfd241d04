// The interface between host and kernels: the structs that kernels take and the launch constants. It has no device
// functions, because the host compiler reads it too (host/).
#pragma once

namespace tfgw {

using i64 = long long;
using u64 = unsigned long long;
using u32 = unsigned int;

// A sparse matrix entry: an edge of a graph with its weight, or an arc of a plan with its mass.
struct alignas(16) Entry {
  double weight;
  int row, col;
};

// The problem on the device, and the data prepared from it. Every member has 8 bytes.
struct Problem {
  // As given by the caller. Null pointers mark what is missing.
  i64 graphs, nodes, features, edges, templates, columns;
  const i64* batch;                 // (nodes)
  const double* x;                  // (nodes, features)
  const double* weights;            // (nodes); null is uniform
  const i64* edge_index;            // (2, edges)
  const double* edge_weight;        // (edges); null is 1
  const double* dense;              // the n × n blocks, row by row, one after the other
  const double* cost;               // (nodes, templates, columns), instead of squared feature distances
  const double* template_structure; // (templates, columns, columns)
  const double* template_x;         // (templates, columns, features)
  const double* template_weights;   // (templates, columns)
  const double* alpha;              // (templates)
  const double* start;              // (nodes, templates, columns): couplings to start from
  const unsigned char* skipped;     // (graphs, templates): 1 for pairs that are not solved; null if there are none
  i64 dense_size;                   // entries of `dense`
  i64 padded_nodes;                 // whether trailing nodes, labelled `graphs`, may be padding

  // Prepared, by graph and node.
  Entry *entry, *t_entry;           // (edges): the rows of C and Cᵀ below, as entries
  Entry* packed;                    // (edges + kPackedRows · nodes): a symmetric C in groups of rows (problem.cuh)
  double* full;                     // (kFull · edges): C as a dense matrix, if it fits
  int* ptr;                         // (graphs + 1)
  int* graph_of;                    // (nodes)
  int* order;                       // (graphs): largest first
  i64* dense_at;                    // (graphs + 1): first entry in `dense`
  int *row_start, *row_length;      // (nodes + 1), (nodes): rows of C in `column` and `value`
  int* column;                      // (edges): within the graph, sorted and distinct along a row
  double* value;                    // (edges)
  int *t_start, *t_length, *t_column;  // the same for Cᵀ, if C is not symmetric
  double* t_value;
  int* edge_id;                     // (edges): working memory
  double *h, *square, *out_mean, *in_mean, *x_norm;  // (nodes)
  i64* supply;                      // (nodes)
  double* constant;                 // (graphs): hᵀ C² h
  int* symmetric;                   // (graphs)
  int *packed_row, *packed_begin;   // (nodes), (nodes + graphs + 1)

  // Prepared, by template; matrices have `padded` columns. Nodes without weight are left out.
  i64 padded;
  int *live_count, *live;           // (templates), (templates, padded): original index of each kept node
  double *t_h, *t_mean_out, *t_mean_in, *t_norm;     // (templates, padded)
  i64* demand;                      // (templates, padded)
  double *C, *Ct, *mean;            // (templates, padded, padded)
  double* ft;                       // (templates, features, padded)
  double* t_square;                 // (templates, columns), of every node
  double* t_constant;               // (templates)

  // Working memory.
  int* queue;                       // the counters below
  int* invalid;                     // the flag kInvalid in host memory
  double* scratch;
  i64 scratch_size;                 // in doubles
  double* initial_state;            // initial_state.cuh
  i64 shared_size, start_shared, small_shared;  // bytes of shared memory of a block of `solve`, `start`, `solve_small`
  i64 team_pairs;                   // the first pairs of the queue, each solved by a whole block
  i64 for_two, for_three, for_four; // largest graphs of which a block solves two, three and four at a time
  i64 for_small;                    // largest graph that `solve_small` solves, or −1
  i64 several;                      // whether pairs have several starts

  // Options and results of the solve.
  i64 max_iter;
  double tol, weight_tolerance;
  double *distance, *structure_cost, *feature_cost, *gap;  // (graphs, templates)
  int *iterations, *status;
  double* plan;                     // (nodes, templates, columns)
  double *row_potential, *col_potential;  // (nodes, templates), (graphs, templates, columns)
};

enum Counter {
  kNextPair, kLargestGraph, kInvalid, kUnused, kUnsorted, kNoSingleWarps, kNextStart, kFirstSmall, kNextSmall, kCounters
};

constexpr int kFull = 4;  // C is multiplied as a dense matrix if it has at most this many entries per edge
constexpr int kPackedRows = 8;

struct Gradients {  // every member has 8 bytes
  const double *grad, *structure_cost, *feature_cost, *plan, *row_potential, *col_potential;
  double *x, *weights, *edge_weight, *dense;                     // null if not requested
  double *template_structure, *template_x, *template_weights, *alpha;
  double* structured;  // (nodes, templates, columns): C T
};

// Parameters of a layer that several places of a problem share (shared_entries.cuh).
struct SharedEntries {
  i64 templates, places, entries;
  i64 alpha_step;            // 0: one α for all templates
  const i64* where;          // (entries, 2): the places of each entry, repeated if it has only one
  double *entry, *alpha;     // (templates, entries), and (templates) or one
  double *structure, *alphas;  // (templates, places), (templates)
};

// The best start of a pair so far.
struct BestStart {
  double value;
  int start;     // −1: none
  int at_floor;  // the first start whose value no other can be below, or a number beyond all starts
  int lock;      // held while a start is compared and written
  int unused;
};

// The nodes that an anchored start pins in a graph or template; `to` is −1 if only one.
struct PinnedNodes {
  int from, to;
};

// Several starts per pair (docs/gpu.md), in waves: first all fresh ones, then those that depend on earlier ones, one of
// each round at a time. Every member has 8 bytes.
struct Starts {
  i64 count, kinds;    // starts per pair, and their allowed kinds (start_rules.cuh)
  i64 fresh, rounds;   // per pair: starts that depend on no other, and rounds of those that do
  i64 items;           // starts per pair in this wave
  i64 wave;            // −1: the fresh starts
  i64 anchored;        // most anchored starts of a pair; 0 if there are none, and what follows for them is null
  i64 walks;           // most nodes of a graph from which walks begin
  i64 begin_shared, walk_shared;  // bytes of shared memory of a block of `starts_begin`, `starts_walk`
  BestStart* best;     // (pairs)
  const double *tied;  // (rows, padded): gradient at hh̄ᵀ with its ties broken
  const double* at_product;  // (pairs, 2): (1−α)⟨M, T⟩ and ⟨T, X(T)⟩ at hh̄ᵀ
  double* cost;        // (items, rows, padded): the cost of each start's first linear problem
  void* arcs;          // (items, rows + pairs · padded): an optimal basis is sought from here
  int* kind;           // (pairs, items)
  double* value;       // (pairs, count): where each start ended; null if no start depends on it and there is no `spread`
  double* gradient;    // (rounds, rows, kKeptMinima, padded): gradients at minima; null likewise
  void* lowest;        // (rounds, pairs): which minima; null likewise
  int* queues;         // (kQueues, kCounters)
  double* spread;      // (graphs, templates): between the highest and the lowest value of all starts; null if not wanted

  // Of anchored starts (pinned.cuh, walks.cuh).
  int* pair_kinds;          // (pairs): the allowed kinds, without those that cannot help
  double* scale;            // (pairs): weight of the walks in a cost
  PinnedNodes* pinned;      // (pairs, anchored): of the graph
  int* walk_of;             // (nodes): number of the walk that begins at a node, if there is one
  double* graph_samples;    // by graph (walks, nodes, kWalkSamples): the walks after some of their steps
  double* template_samples; // (templates, anchored, 2, kWalkSamples, padded): from both pinned nodes of the template
};
enum StartQueue { kWaveQueue, kProductQueue, kQueues };

// Threads of a block, by kernel.
constexpr int kStartWarps = 4, kBlockWarps = 4;  // warps per block of `start` and of `solve`
constexpr int kIndexThreads = 1024, kPrepareThreads = 256;
constexpr int kStartThreads = 32 * kStartWarps, kSolveThreads = 32 * kBlockWarps;
constexpr int kNodeThreads = 128, kEdgeThreads = 128, kTemplateThreads = 512, kEntryThreads = 256;
constexpr int kStartBlocks = 4, kSolveBlocks = 2, kSmallBlocks = 3;  // blocks per multiprocessor
constexpr int kBeginWarps = 4, kBeginThreads = 32 * kBeginWarps, kBeginBlocks = 4;  // of `starts_begin`, `starts_pin`
constexpr int kWalkThreads = 512, kWalkBlocks = 2;  // of `starts_walk`
constexpr int kMany = 16;  // pairs per block of `solve` from which the smallest get specialised code
constexpr int kSharedAtoms = 16, kSmallSharedAtoms = 8;  // atoms of `solve` and of `solve_small` in shared memory
constexpr int kStartsSharedAtoms = 8;  // the same of `starts`, where many starts fill the GPU and few have more atoms
constexpr int kTileColumns = 2, kTile = 32 * kTileColumns;  // columns of a gradient per lane and per block

// The start that a team works on: its place in the wave, its number, and what the team's first thread decided.
struct CurrentStart {
  int item, start, decision, unused;
};

// The part of a block's shared memory that follows its pairs, if they have several starts.
struct alignas(16) StartsBlock {
  Starts starts;                      // the kernel's parameter
  CurrentStart current[kBlockWarps];  // by warp; only the first if all warps share a pair
};

}  // namespace tfgw

// The problem on the device, and what is prepared from it: one struct that run.py fills. Every member has 8 bytes.
#pragma once

#include "warp.cuh"

namespace tfgw {

// A row and a column with a number: an edge of a graph with its weight, an arc of a plan with its mass.
struct alignas(16) Entry {
  double weight;
  int row, col;
};

TFGW_DEVICE Entry read_only(const Entry* at) {
  return {read_only(&at->weight), read_only(&at->row), read_only(&at->col)};
}

struct Problem {
  // As the caller gives it; a null pointer where something is not there.
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
  i64 dense_size;                   // entries of `dense`

  // Prepared, by graph and node.
  Entry *entry, *t_entry;           // (edges): the rows of C and Cᵀ that come below, once more, for the solver
  Entry* packed;                    // (edges + kPackedRows · nodes): a symmetric C once more, see below
  double* full;                     // (kFull · edges): C as a matrix where that takes no more room than this
  int* ptr;                         // (graphs + 1)
  int* graph_of;                    // (nodes)
  int* order;                       // (graphs): largest first
  i64* dense_at;                    // (graphs + 1): first entry in `dense`
  int *row_start, *row_length;      // (nodes + 1), (nodes): rows of C in `column` and `value`
  int* column;                      // (edges): within the graph, sorted and distinct along a row
  double* value;                    // (edges)
  int *t_start, *t_length, *t_column;  // the same of Cᵀ, where C is not symmetric
  double* t_value;
  int* edge_id;                     // (edges): working memory
  double *h, *square, *out_mean, *in_mean, *x_norm;  // (nodes)
  i64* supply;                      // (nodes)
  double* constant;                 // (graphs): hᵀ C² h
  int* symmetric;                   // (graphs)
  int *packed_row, *packed_begin;   // (nodes), (nodes + graphs + 1)

  // Prepared, by template; matrices have `padded` columns. Weightless nodes are left out.
  i64 padded;
  int *live_count, *live;           // (templates), (templates, padded): original index of each kept node
  double *t_h, *t_mean_out, *t_mean_in, *t_norm;     // (templates, padded)
  i64* demand;                      // (templates, padded)
  double *C, *Ct, *mean;            // (templates, padded, padded)
  double* ft;                       // (templates, features, padded)
  double* t_square;                 // (templates, columns), of every node
  double* t_constant;               // (templates)

  // Working memory.
  int* queue;                       // counters, as listed below
  int* invalid;                     // the same flag, where the host sees it
  double* scratch;
  i64 scratch_size;                 // in doubles
  i64 shared_size;                  // bytes of shared memory that a block has besides
  i64 small_graph;                  // nodes of a graph that a warp solves on its own, at most

  // Options and results of the solve.
  i64 max_iter;
  double tol, weight_tolerance;
  double *distance, *structure_cost, *feature_cost, *gap;  // (graphs, templates)
  int *iterations, *status;
  double* plan;                     // (nodes, templates, columns)
  double *row_potential, *col_potential;  // (nodes, templates), (graphs, templates, columns)
};

enum Counter { kNextPair, kLargestGraph, kInvalid, kUnused, kUnsorted, kNoneAlone, kCounters };

constexpr int kFull = 4;  // a graph's matrix is multiplied as such if it has at most so many entries per edge
constexpr double kMassUnit = 1.0 / double(i64(1) << 60);
constexpr double kPadCost = 1e300;
constexpr double kLargest = 1e100;  // beyond this, squares and their products overflow

TFGW_DEVICE bool usable(double v) { return magnitude(v) <= kLargest; }
TFGW_DEVICE void report_invalid(const Problem& p) { p.queue[kInvalid] = 1, *p.invalid = 1; }

// A sparse and symmetric C that is not multiplied as a matrix has its entries in groups of `kGroup` rows (bits.cuh),
// the longest rows first, all rows of a group as long as its first: entry d of row r of group q is at
// packed_at + packed_begin[q] + d · kGroup + r. What is added has weight 0. `packed_row` has the rows in their new
// order.
// Since rows are sorted, no more is added than kGroup times the longest one.
constexpr int kPackedRows = 8;
TFGW_DEVICE i64 packed_at(const Problem& p, int first) { return p.row_start[first] + kPackedRows * i64(first); }
TFGW_DEVICE int* packed_begin(const Problem& p, int b) { return p.packed_begin + p.ptr[b] + b; }

// One graph or one template of the problem, as the solver reads it.
struct GraphView {
  int n, first;
  bool symmetric, sparse;
  const double* dense;  // C as a matrix; where `sparse`, only if it has few zeros
};

TFGW_DEVICE bool is_full(const Problem& p, int first, int n) {
  return i64(n) * n <= kFull * i64(p.row_start[first + n] - p.row_start[first]);
}
TFGW_DEVICE double* full_matrix(const Problem& p, int first) { return p.full + kFull * i64(p.row_start[first]); }

TFGW_DEVICE GraphView graph_view(const Problem& p, int b) {
  const int first = p.ptr[b], n = p.ptr[b + 1] - first;
  const double* dense = p.dense ? p.dense + p.dense_at[b] : nullptr;
  if (p.edge_index && is_full(p, first, n)) dense = full_matrix(p, first);
  return {n, first, p.symmetric[b] != 0, p.edge_index != nullptr, dense};
}

TFGW_DEVICE bool has_structure(const Problem& p) { return p.edge_index || p.dense; }

}  // namespace tfgw

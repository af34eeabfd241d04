// A padded batch, gathered from a dataset whose graphs are concatenated: one kernel instead of some forty operations on
// short vectors. Every block finds the places of all graphs for itself, then all threads of the grid share the rows.
#pragma once

#include "block.cuh"

namespace tfgw {

constexpr int kPaddedThreads = 256;
constexpr int kMostGraphs = 1024;  // of a batch, so that their places fit in shared memory

// The rows of each graph in the dataset, by their number and the row after the last.
struct Spans {
  const i64 *length, *end;
};

// The same layout as `Padded` in nn/cuda/gather_kernel.py. Edge and node weights may be null.
template <class T>
struct Padded {
  const i64* graphs;  // indices in the dataset
  Spans nodes, edges;
  const T* x;
  const i64* edge_index;  // first nodes of all edges in the dataset, then second nodes
  const T *edge_weight, *node_weights;
  T* out_x;
  i64 *out_edge_index, *out_batch;
  T *out_edge_weight, *out_node_weights;
  T *is_node, *number;
  i64 graph_count, node_rows, edge_rows, channels, all_edges;
};

struct PaddedMemory {
  i64 node_end[kMostGraphs + 1], edge_end[kMostGraphs + 1];  // in the batch: of the graph before, so from 0
  i64 warp_sum[kPaddedThreads / 32];
};

template <class T>
class PaddedBatch {
 public:
  TFGW_DEVICE PaddedBatch(const Padded<T>& p, PaddedMemory& memory)
      : p_(p), m_(memory), count_(int(p.graph_count)) {}

  TFGW_DEVICE void run() {
    place(p_.nodes, m_.node_end);
    place(p_.edges, m_.edge_end);
    sync_block();
    const i64 step = i64(blocks_in_grid()) * kPaddedThreads;
    const i64 first = i64(block_index()) * kPaddedThreads + thread_in_block();
    const i64 nodes = m_.node_end[count_];
    if (first == 0) *p_.number = T(nodes);
#pragma unroll 1
    for (i64 e = first; e < p_.node_rows * p_.channels; e += step) {
      const i64 row = e / p_.channels;
      p_.out_x[e] = row < nodes ? p_.x[(row + shift_of_nodes(graph_at(m_.node_end, row))) * p_.channels +
                                       e % p_.channels]
                                : T(0);
    }
#pragma unroll 1
    for (i64 row = first; row < p_.node_rows; row += step) write_node(row, nodes);
#pragma unroll 1
    for (i64 row = first; row < p_.edge_rows; row += step) write_edge(row, nodes);
  }

 private:
  // Running sums of the lengths of the graphs in the batch.
  TFGW_DEVICE void place(const Spans& spans, i64* end) {
    i64 before = 0;
    if (thread_in_block() == 0) end[0] = 0;
#pragma unroll 1
    for (int first = 0; first < count_; first += kPaddedThreads) {
      const int g = first + thread_in_block();
      const i64 sum = running_sum(g < count_ ? spans.length[p_.graphs[g]] : i64(0));
      sync_block();  // the sums of the round before have been read
      if (lane() == 31) m_.warp_sum[thread_in_block() / 32] = sum;
      sync_block();
      i64 others = before;
#pragma unroll
      for (int w = 0; w < kPaddedThreads / 32; ++w) {
        if (w < thread_in_block() / 32) others += m_.warp_sum[w];
        before += m_.warp_sum[w];
      }
      if (g < count_) end[g + 1] = others + sum;
    }
  }

  // The graph of a row that is not padding: the last one that begins at or before it, and has rows.
  TFGW_DEVICE int graph_at(const i64* end, i64 row) const {
    int low = 0, high = count_;  // the answer is in low … high − 1
#pragma unroll 1
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (end[middle] <= row) low = middle;
      else high = middle;
    }
    return low;
  }

  // From a row of the batch to that of the dataset.
  TFGW_DEVICE i64 shift_of_nodes(int g) const { return p_.nodes.end[p_.graphs[g]] - m_.node_end[g + 1]; }

  TFGW_DEVICE void write_node(i64 row, i64 nodes) const {
    const bool exists = row < nodes;
    const int g = exists ? graph_at(m_.node_end, row) : count_;
    p_.out_batch[row] = g;
    p_.is_node[row] = T(exists);
    if (p_.node_weights) p_.out_node_weights[row] = p_.node_weights[exists ? row + shift_of_nodes(g) : 0];
  }

  TFGW_DEVICE void write_edge(i64 row, i64 nodes) const {
    const i64 edges = m_.edge_end[count_];
    i64 ends[2], from = 0;
    if (row < edges) {
      const int g = graph_at(m_.edge_end, row);
      from = row + p_.edges.end[p_.graphs[g]] - m_.edge_end[g + 1];
      for (int s = 0; s < 2; ++s) ends[s] = p_.edge_index[s * p_.all_edges + from] - shift_of_nodes(g);
    } else {  // a path through the nodes of padding, spread evenly
      ends[0] = nodes + (row - edges) * (p_.node_rows - 1 - nodes) / (p_.edge_rows - edges);
      ends[1] = ends[0] + 1;
    }
    for (int s = 0; s < 2; ++s) p_.out_edge_index[s * p_.edge_rows + row] = ends[s];
    if (p_.edge_weight) p_.out_edge_weight[row] = p_.edge_weight[from];
  }

  const Padded<T>& p_;
  PaddedMemory& m_;
  const int count_;
};

}  // namespace tfgw

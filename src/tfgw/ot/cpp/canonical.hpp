// A canonical order of the nodes of a coloured graph: isomorphic graphs become equal when reordered.
//
// Individualisation and refinement, as in nauty. Nodes are partitioned by their colours and by their neighbours' cells
// (refinement.hpp). If a cell still has several nodes, each of them in turn is individualised and the partition refined
// again: a search tree, whose leaves are orders. Among the leaves with the smallest hashes along the path, the one
// whose graph comes first wins. Two leaves with equal graphs reveal an automorphism, and branches that are images of
// others under automorphisms (twins among them) are skipped.
#pragma once

#include <cstdint>
#include <vector>

#include "coloured_graph.hpp"
#include "interrupt.hpp"

namespace tfgw {

struct CanonicalOrder {
  std::vector<int32_t> order;  // nodes, first to last
  bool exact = true;           // false if the search gave up; the order may then depend on the node numbering
};

// `effort` bounds the search, in steps of about ten nanoseconds. Steps are counted, not timed, so that the result is
// deterministic. If interrupted, there is no order.
CanonicalOrder canonical_order(const ColouredGraph& graph, int64_t effort, Interrupt& interrupt);

// The graphs of a batch, with all attributes that distinguish their nodes and edges.
struct OrderInput {
  int64_t graphs;
  const int64_t* ptr;         // graph b owns nodes [ptr[b], ptr[b + 1])
  const double* node_rows;    // (nodes, node_width)
  int64_t node_width;
  int64_t edges;
  const int64_t* edge_index;  // (2, edges)
  const double* edge_rows;    // (edges, edge_width), or null
  int64_t edge_width;
  const double* dense;        // the n × n blocks one after the other, or null
};

// Writes the canonical order of each graph, in node numbers of the batch, and whether it is exact. Returns false if
// interrupted.
bool canonical_orders(const OrderInput& in, int64_t effort, Interrupt& interrupt, int64_t* order, int32_t* exact);

}  // namespace tfgw

// A canonical order of the nodes of a coloured graph: isomorphic graphs, each put in its order, are equal.
//
// Individualisation and refinement, as in nauty. Nodes are parted by their colours and by what they see of each other
// (refinement.hpp). Where some stay alike, one of them is made special and the rest refined again, for each of them in
// turn: a search tree, whose leaves are orders. Of the leaves with the smallest hashes on the way, the one whose graph
// comes first wins. Two leaves with equal graphs show an automorphism, and branches that are images of others under
// automorphisms (twins among them) are skipped.
#pragma once

#include <cstdint>
#include <vector>

#include "coloured_graph.hpp"
#include "interrupt.hpp"

namespace tfgw {

struct CanonicalOrder {
  std::vector<int32_t> order;  // nodes, first to last
  bool exact = true;           // false: the search gave up, and the order may depend on how nodes were numbered
};

// `effort` bounds the search, in steps of about ten nanoseconds; counted, not timed, so that the answer is always the
// same. Once the interrupt has stopped, there is no order.
CanonicalOrder canonical_order(const ColouredGraph& graph, int64_t effort, Interrupt& interrupt);

// The graphs of a batch, with all that tells their nodes and edges apart.
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

// Writes the canonical order of each graph, in numbers of the whole batch, and whether it is exact. False if interrupted.
bool canonical_orders(const OrderInput& in, int64_t effort, Interrupt& interrupt, int64_t* order, int32_t* exact);

}  // namespace tfgw

// Ordered partitions of a graph's nodes, refined until all nodes of a cell have equal ties to every cell.
#pragma once

#include <cstdint>
#include <vector>

#include "coloured_graph.hpp"
#include "interrupt.hpp"

namespace tfgw {

// A sequence of nodes, divided into cells. A cell is identified by the position of its first node.
struct Partition {
  std::vector<int32_t> node;   // at each position
  std::vector<int32_t> cell;   // of each node
  std::vector<int32_t> size;   // of each cell, by the position of its first node
  int cells = 0;

  bool is_discrete() const { return cells == int(node.size()); }
};

class Refiner {
 public:
  // After an interrupt, partitions are left as they are, refined or not.
  Refiner(const ColouredGraph& graph, Interrupt& interrupt);

  // The cells by node colour, refined.
  Partition first_partition();

  // Splits `node` off as the first, singleton part of its cell, and refines. Returns a hash of the refinement, which
  // does not depend on the node numbering.
  uint64_t individualise(Partition& partition, int node);

  // Splits a cell of twins into singletons; no other cell can change.
  static void separate(Partition& partition, int cell);

  // Number of steps so far.
  int64_t work() const { return work_; }

 private:
  uint64_t refine(Partition& partition, std::vector<int32_t> queue);
  uint64_t split(Partition& partition, int cell, std::vector<int32_t>& queue);

  bool stop_requested();

  const ColouredGraph& graph_;
  Interrupt& interrupt_;
  std::vector<uint64_t> key_;
  std::vector<char> queued_;
  std::vector<int32_t> touched_, touched_cells_, parts_;
  int64_t work_ = 0, next_poll_ = 0;
};

}  // namespace tfgw

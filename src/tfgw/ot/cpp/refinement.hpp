// Ordered partitions of a graph's nodes, and their refinement until the nodes of a cell look alike from every cell.
#pragma once

#include <cstdint>
#include <vector>

#include "coloured_graph.hpp"
#include "interrupt.hpp"

namespace tfgw {

// Nodes in a row, cut into cells. A cell is named by the place of its first node.
struct Partition {
  std::vector<int32_t> node;   // at each place
  std::vector<int32_t> cell;   // of each node
  std::vector<int32_t> size;   // of each cell, by its name
  int cells = 0;

  bool is_discrete() const { return cells == int(node.size()); }
};

class Refiner {
 public:
  // Once the interrupt has stopped, partitions are left as they are, refined or not.
  Refiner(const ColouredGraph& graph, Interrupt& interrupt);

  // Cells by node colour, refined.
  Partition first_partition();

  // Makes `node` the first of its cell and a cell of its own, and refines. Returns a hash of all that was seen on the
  // way, which does not depend on how nodes are numbered.
  uint64_t individualise(Partition& partition, int node);

  // Makes every node of a cell of twins a cell of its own; nothing else can change.
  static void separate(Partition& partition, int cell);

  // Steps so far.
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

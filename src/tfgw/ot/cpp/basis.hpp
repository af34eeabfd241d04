// A basis of the transportation problem: a spanning tree of rows and columns, rooted at the last column.
//
// Two representations share one interface (build, compute_potentials, row_potential, col_potentials, pivot,
// for_each_arc): MaskTree for up to 128 columns and any number of rows, LinkedTree for more. Both keep the tree
// strongly feasible: an arc without flow points from a row up to a column nearer the root. Potentials satisfy
// u + v = cost on every arc of the tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tfgw {

struct Arc {
  int32_t row, col;
  int64_t flow;
};

// A tree arc and its end farther from the root.
struct RootedArc {
  Arc arc;
  bool row_is_child;
};

// The arcs of a spanning tree ordered from the root down.
std::vector<RootedArc> from_root_down(int rows, int cols, const std::vector<Arc>& arcs);

}  // namespace tfgw

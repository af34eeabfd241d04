// A basis of any size (basis.hpp): parent links, and the children of a node as a doubly linked list.
#pragma once

#include "basis.hpp"

namespace tfgw {

class LinkedTree {
 public:
  void build(int rows, int cols, const std::vector<Arc>& arcs);
  // Returns the largest cost on the tree, in absolute value.
  double compute_potentials(const double* cost, int ld);
  double row_potential(int row) const { return u_[row]; }
  const double* col_potentials() const { return v_.data(); }

  // Brings arc (row, col), of the given reduced cost, into the basis.
  void pivot(int row, int col, double reduced);

  template <class Visit>
  void for_each_arc(Visit visit) const {
    for (int node = 0; node < int(nodes_.size()) - 1; ++node) {
      const Node& n = nodes_[node];
      is_row(node) ? visit(node, n.parent - rows_, n.flow) : visit(n.parent, node - rows_, n.flow);
    }
  }

 private:
  // The link to the parent carries `flow`, from row to column.
  struct Node {
    int32_t parent = -1, depth = 0, child = -1, next = -1, prev = -1;
    int64_t flow = 0;
  };

  int push_flow_around_cycle(int row, int col, int64_t& pushed);
  void rehang(int top, int in, int out, int64_t flow);
  int next_in_subtree(int node, int top) const;
  void attach(int node, int parent);
  void detach(int node);
  bool is_row(int node) const { return node < rows_; }

  int rows_ = 0;
  std::vector<Node> nodes_;  // rows first, then columns
  std::vector<double> u_, v_;
};

}  // namespace tfgw

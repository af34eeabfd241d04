#include "linked_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.hpp"

namespace tfgw {

void LinkedTree::build(int rows, int cols, const std::vector<Arc>& arcs) {
  rows_ = rows;
  nodes_.assign(rows + cols, Node{});
  u_.assign(rows, 0.0);
  v_.assign(padded(cols), 0.0);
  for (const RootedArc& a : from_root_down(rows, cols, arcs)) {
    const int row = a.arc.row, col = rows + a.arc.col;
    const int child = a.row_is_child ? row : col, parent = a.row_is_child ? col : row;
    attach(child, parent);
    nodes_[child].depth = nodes_[parent].depth + 1;
    nodes_[child].flow = a.arc.flow;
  }
}

double LinkedTree::compute_potentials(const double* cost, int ld) {
  const int root = int(nodes_.size()) - 1;
  double largest = 0;
  v_[root - rows_] = 0;
  for (int node = next_in_subtree(root, root); node >= 0; node = next_in_subtree(node, root)) {
    const int parent = nodes_[node].parent;
    const int row = is_row(node) ? node : parent, col = (is_row(node) ? parent : node) - rows_;
    const double c = cost[int64_t(row) * ld + col];
    largest = std::max(largest, std::abs(c));
    if (is_row(node)) {
      u_[row] = c - v_[col];
    } else {
      v_[col] = c - u_[row];
    }
  }
  return largest;
}

void LinkedTree::pivot(int row, int col, double reduced) {
  int64_t pushed;
  const int leaving = push_flow_around_cycle(row, col, pushed);
  const bool row_side = leaving >= 0;  // the cut-off subtree holds `row`, else `col`
  const int in = row_side ? row : rows_ + col, out = row_side ? rows_ + col : row;
  rehang(row_side ? leaving : ~leaving, in, out, pushed);
  const double shift = row_side ? reduced : -reduced;
  for (int node = in; node >= 0; node = next_in_subtree(node, in)) {
    nodes_[node].depth = nodes_[nodes_[node].parent].depth + 1;
    if (is_row(node)) {
      u_[node] += shift;
    } else {
      v_[node - rows_] -= shift;
    }
  }
}

// Sends as much flow as possible along (row, col) and back through the tree. Returns the lower end of the leaving arc,
// complemented if it lies on the column's side. Of several blocking arcs, the leaving one is the last on the cycle,
// walked from its apex in the direction of the flow: down to `row`, over the new arc, up from `col` (Cunningham's
// rule).
int LinkedTree::push_flow_around_cycle(int row, int col, int64_t& pushed) {
  int a = row, b = rows_ + col;
  int64_t row_min = std::numeric_limits<int64_t>::max(), col_min = row_min;
  int row_block = -1, col_block = -1;
  const auto climb_row_side = [&] {
    if (is_row(a) && nodes_[a].flow < row_min) row_min = nodes_[a].flow, row_block = a;
    a = nodes_[a].parent;
  };
  const auto climb_col_side = [&] {
    if (!is_row(b) && nodes_[b].flow <= col_min) col_min = nodes_[b].flow, col_block = b;
    b = nodes_[b].parent;
  };
  while (nodes_[a].depth > nodes_[b].depth) climb_row_side();
  while (nodes_[b].depth > nodes_[a].depth) climb_col_side();
  while (a != b) {
    climb_row_side();
    climb_col_side();
  }
  const int apex = a;
  const bool on_row_side = row_min < col_min;
  pushed = on_row_side ? row_min : col_min;
  for (int p = row; p != apex; p = nodes_[p].parent) nodes_[p].flow += is_row(p) ? -pushed : pushed;
  for (int p = rows_ + col; p != apex; p = nodes_[p].parent) nodes_[p].flow += is_row(p) ? pushed : -pushed;
  return on_row_side ? row_block : ~col_block;
}

// Cuts the subtree below `top`, makes `in` its root and hangs it under `out`.
void LinkedTree::rehang(int top, int in, int out, int64_t flow) {
  int node = in, parent = out;
  while (true) {
    const int old_parent = nodes_[node].parent;
    const int64_t old_flow = nodes_[node].flow;
    detach(node);
    attach(node, parent);
    nodes_[node].flow = flow;
    if (node == top) return;
    parent = node;
    node = old_parent;
    flow = old_flow;
  }
}

// Preorder successor of `node` inside the subtree of `top`, or -1.
int LinkedTree::next_in_subtree(int node, int top) const {
  if (nodes_[node].child >= 0) return nodes_[node].child;
  while (node != top) {
    if (nodes_[node].next >= 0) return nodes_[node].next;
    node = nodes_[node].parent;
  }
  return -1;
}

void LinkedTree::attach(int node, int parent) {
  Node& n = nodes_[node];
  Node& p = nodes_[parent];
  n.parent = parent;
  n.prev = -1;
  n.next = p.child;
  if (p.child >= 0) nodes_[p.child].prev = node;
  p.child = node;
}

void LinkedTree::detach(int node) {
  const Node& n = nodes_[node];
  if (n.prev >= 0) {
    nodes_[n.prev].next = n.next;
  } else {
    nodes_[n.parent].child = n.next;
  }
  if (n.next >= 0) nodes_[n.next].prev = n.prev;
}

}  // namespace tfgw

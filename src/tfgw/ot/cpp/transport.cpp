#include "transport.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels.hpp"

namespace tfgw {
namespace {

constexpr int kPricedEntries = 4096;  // costs looked at before the best candidates are pivoted on
constexpr int kPollEvery = 64;        // pricing rounds between two polls of the interrupt

}  // namespace

void to_fixed_point(const double* weights, int count, int64_t* out) {
  double total = 0;
  for (int i = 0; i < count; ++i) total += weights[i];
  int64_t left = int64_t(1) << kMassBits;
  const double scale = double(left) / total;
  int heaviest = 0;
  for (int i = 0; i < count; ++i) {
    out[i] = std::llround(weights[i] * scale);
    left -= out[i];
    if (out[i] > out[heaviest]) heaviest = i;
  }
  out[heaviest] += left;  // rounding leaves a few units over or under
}

void TransportSimplex::reset(int rows, int cols, int ld, const int64_t* supply, const int64_t* demand) {
  rows_ = rows;
  cols_ = cols;
  ld_ = ld;
  has_basis_ = false;
  pivots_ = 0;
  supply_.assign(supply, supply + rows);
  demand_.assign(demand, demand + cols);
  tree_.resize(rows + cols);
  u_.assign(rows, 0.0);
  v_.assign(ld, 0.0);
  best_.resize(ld);
  best_row_.resize(ld);
}

bool TransportSimplex::solve(const double* cost, Interrupt& interrupt) {
  cost_ = cost;
  // Potentials are sums of costs along tree paths: below this, a reduced cost is rounding.
  const double largest = kernels().largest_magnitude(rows_, cols_, ld_, cost);
  eps_ = 4 * std::numeric_limits<double>::epsilon() * (rows_ + cols_) * largest;

  if (!has_basis_) build_greedy_basis(cost);
  compute_potentials();

  const int block = std::min(rows_, std::max(1, kPricedEntries / ld_));
  const Kernels& fast = kernels();
  int first = 0, clean_rows = 0, rounds = 0;
  while (clean_rows < rows_) {
    const int last = std::min(rows_, first + block);
    fast.price(first, last, ld_, cost, u_.data(), v_.data(), eps_, best_.data(), best_row_.data());
    clean_rows = pivot_on_candidates() ? 0 : clean_rows + last - first;
    first = last == rows_ ? 0 : last;
    if (++rounds % kPollEvery == 0 && interrupt.poll()) return false;
  }
  return true;
}

// Pivots on the best cell of each column, most negative first, while they stay improving. False if there was none.
bool TransportSimplex::pivot_on_candidates() {
  candidates_.clear();
  for (int k = 0; k < cols_; ++k)
    if (best_row_[k] >= 0) candidates_.push_back({int32_t(best_row_[k]), k});
  const bool found = !candidates_.empty();
  while (true) {
    double lowest = -eps_;
    const Cell* chosen = nullptr;
    for (const Cell& cell : candidates_) {
      const double reduced = reduced_cost(cell.row, cell.col);
      chosen = reduced < lowest ? &cell : chosen;
      lowest = std::min(reduced, lowest);
    }
    if (!chosen) return found;
    pivot(chosen->row, chosen->col);
  }
}

void TransportSimplex::pivot(int row, int col) {
  ++pivots_;
  const double reduced = reduced_cost(row, col);
  int64_t pushed;
  const int leaving = push_flow_around_cycle(row, col, pushed);
  const bool row_side = leaving >= 0;  // the cut-off subtree holds `row`, else `col`
  const int top = row_side ? leaving : ~leaving;
  const int in = row_side ? row : rows_ + col, out = row_side ? rows_ + col : row;
  rehang(top, in, out, pushed);
  shift_subtree(in, row_side ? reduced : -reduced);
}

// Sends as much flow as fits along (row, col) and back through the tree. Returns the lower end of the leaving arc,
// complemented if it lies on the column's side. Among blocking arcs it is the last one met when the cycle is walked
// from its apex in the direction of the flow: down to `row`, over the new arc, up from `col` (Cunningham's rule).
int TransportSimplex::push_flow_around_cycle(int row, int col, int64_t& pushed) {
  int a = row, b = rows_ + col;
  int64_t row_min = std::numeric_limits<int64_t>::max(), col_min = row_min;
  int row_block = -1, col_block = -1;
  const auto climb_row_side = [&] {
    if (is_row(a) && tree_[a].flow < row_min) row_min = tree_[a].flow, row_block = a;
    a = tree_[a].parent;
  };
  const auto climb_col_side = [&] {
    if (!is_row(b) && tree_[b].flow <= col_min) col_min = tree_[b].flow, col_block = b;
    b = tree_[b].parent;
  };
  while (tree_[a].depth > tree_[b].depth) climb_row_side();
  while (tree_[b].depth > tree_[a].depth) climb_col_side();
  while (a != b) {
    climb_row_side();
    climb_col_side();
  }
  const int apex = a;
  const bool on_row_side = row_min < col_min;
  pushed = on_row_side ? row_min : col_min;
  if (pushed > 0) {
    for (int p = row; p != apex; p = tree_[p].parent) tree_[p].flow += is_row(p) ? -pushed : pushed;
    for (int p = rows_ + col; p != apex; p = tree_[p].parent) tree_[p].flow += is_row(p) ? pushed : -pushed;
  }
  return on_row_side ? row_block : ~col_block;
}

// Cuts the subtree below `top`, makes `in` its root and hangs it under `out`.
void TransportSimplex::rehang(int top, int in, int out, int64_t flow) {
  int node = in, parent = out;
  while (true) {
    const int old_parent = tree_[node].parent;
    const int64_t old_flow = tree_[node].flow;
    detach(node);
    attach(node, parent);
    tree_[node].flow = flow;
    if (node == top) return;
    parent = node;
    node = old_parent;
    flow = old_flow;
  }
}

// Adds `row_shift` to the row potentials below `top` and takes it from the column potentials; depths follow.
void TransportSimplex::shift_subtree(int top, double row_shift) {
  for (int node = top; node >= 0; node = next_in_subtree(node, top)) {
    tree_[node].depth = tree_[tree_[node].parent].depth + 1;
    if (is_row(node)) {
      u_[node] += row_shift;
    } else {
      v_[node - rows_] -= row_shift;
    }
  }
}

// Preorder successor of `node` inside the subtree of `top`, or -1.
int TransportSimplex::next_in_subtree(int node, int top) const {
  if (tree_[node].child >= 0) return tree_[node].child;
  while (node != top) {
    if (tree_[node].next >= 0) return tree_[node].next;
    node = tree_[node].parent;
  }
  return -1;
}

void TransportSimplex::attach(int node, int parent) {
  Node& n = tree_[node];
  Node& p = tree_[parent];
  n.parent = parent;
  n.prev = -1;
  n.next = p.child;
  if (p.child >= 0) tree_[p.child].prev = node;
  p.child = node;
}

void TransportSimplex::detach(int node) {
  const Node& n = tree_[node];
  if (n.prev >= 0) {
    tree_[n.prev].next = n.next;
  } else {
    tree_[n.parent].child = n.next;
  }
  if (n.next >= 0) tree_[n.next].prev = n.prev;
}

void TransportSimplex::compute_potentials() {
  const int root = rows_ + cols_ - 1;
  v_[cols_ - 1] = 0;
  for (int node = next_in_subtree(root, root); node >= 0; node = next_in_subtree(node, root)) {
    const int parent = tree_[node].parent;
    if (is_row(node)) {
      u_[node] = cost_[int64_t(node) * ld_ + parent - rows_] - v_[parent - rows_];
    } else {
      v_[node - rows_] = cost_[int64_t(parent) * ld_ + node - rows_] - u_[parent];
    }
  }
}

// The cost less its column means: what makes a column dear to every row does not matter to the plan.
std::vector<double> TransportSimplex::centred(const double* cost) const {
  std::vector<double> mean(ld_, 0.0), out(cost, cost + size_t(rows_) * ld_);
  for (int i = 0; i < rows_; ++i)
    for (int k = 0; k < cols_; ++k) mean[k] += cost[int64_t(i) * ld_ + k] / rows_;
  for (int i = 0; i < rows_; ++i)
    for (int k = 0; k < cols_; ++k) out[int64_t(i) * ld_ + k] -= mean[k];
  return out;
}

// Rows in decreasing order of regret: the gap between their cheapest and second cheapest column.
std::vector<int32_t> TransportSimplex::by_regret(const std::vector<double>& cost) const {
  std::vector<double> regret(rows_);
  for (int i = 0; i < rows_; ++i) {
    double first = std::numeric_limits<double>::infinity(), second = first;
    for (int k = 0; k < cols_; ++k) {
      const double c = cost[int64_t(i) * ld_ + k];
      second = std::min(second, std::max(first, c));
      first = std::min(first, c);
    }
    regret[i] = cols_ > 1 ? second - first : 0.0;
  }
  std::vector<int32_t> order(rows_);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return regret[a] > regret[b]; });
  return order;
}

// Ships greedily, each row to its cheapest open column, rows with most to lose first. Ties are decided as if every
// node but the root had a vanishing extra supply (`extra` counts it): a basis that is feasible then is strongly
// feasible. Every demand must be positive.
void TransportSimplex::build_greedy_basis(const double* cost) {
  const std::vector<double> relative = centred(cost);
  std::vector<int64_t> have = supply_, want = demand_;
  std::vector<int32_t> extra_have(rows_, 1), extra_want(cols_, -1);
  extra_want[cols_ - 1] = rows_ + cols_ - 1;
  std::vector<char> open(cols_, 1);
  std::vector<int32_t> row, col;
  std::vector<int64_t> flow;
  int open_cols = cols_;
  for (int i : by_regret(relative)) {
    const double* c = &relative[int64_t(i) * ld_];
    while (true) {
      int k = -1;
      for (int j = 0; j < cols_; ++j)
        if (open[j] && (k < 0 || c[j] < c[k])) k = j;
      row.push_back(i);
      col.push_back(k);
      const bool column_fills =
          open_cols > 1 && (want[k] < have[i] || (want[k] == have[i] && extra_want[k] < extra_have[i]));
      flow.push_back(column_fills ? want[k] : have[i]);
      if (column_fills) {
        have[i] -= want[k];
        extra_have[i] -= extra_want[k];
        open[k] = 0;
        --open_cols;
        continue;
      }
      want[k] -= have[i];
      extra_want[k] -= extra_have[i];
      break;
    }
  }
  hang_tree(row, col, flow);
  has_basis_ = true;
}

// Turns the arcs of a spanning tree into parent links, from the root down.
void TransportSimplex::hang_tree(const std::vector<int32_t>& row, const std::vector<int32_t>& col,
                                 const std::vector<int64_t>& flow) {
  const int nodes = rows_ + cols_, arcs = nodes - 1, root = nodes - 1;
  std::vector<int32_t> start(nodes + 1, 0), incident(2 * arcs);
  for (int e = 0; e < arcs; ++e) ++start[row[e] + 1], ++start[rows_ + col[e] + 1];
  for (int v = 0; v < nodes; ++v) start[v + 1] += start[v];
  std::vector<int32_t> fill(start.begin(), start.end() - 1);
  for (int e = 0; e < arcs; ++e) {
    incident[fill[row[e]]++] = e;
    incident[fill[rows_ + col[e]]++] = e;
  }
  for (Node& node : tree_) node = {-1, 0, -1, -1, -1, 0};
  std::vector<int32_t> stack = {root};
  while (!stack.empty()) {
    const int node = stack.back();
    stack.pop_back();
    for (int s = start[node]; s < start[node + 1]; ++s) {
      const int e = incident[s];
      const int other = is_row(node) ? rows_ + col[e] : row[e];
      if (other == tree_[node].parent) continue;
      attach(other, node);
      tree_[other].depth = tree_[node].depth + 1;
      tree_[other].flow = flow[e];
      stack.push_back(other);
    }
  }
}

void TransportSimplex::flow(SparsePlan& out) const {
  out.clear();
  for (int node = 0; node < rows_ + cols_ - 1; ++node) {
    const Node& n = tree_[node];
    if (n.flow <= 0) continue;
    const int row = is_row(node) ? node : n.parent, col = (is_row(node) ? n.parent : node) - rows_;
    out.push(row, col, double(n.flow) * kMassUnit);
  }
}

}  // namespace tfgw

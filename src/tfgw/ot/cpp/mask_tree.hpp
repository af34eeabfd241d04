// A basis for problems of at most 32·W columns (basis.hpp) that needs no tree traversal.
//
// A row that ships everything to one column, its home, is a leaf: its flow is its supply and its potential follows
// from its home's. All other rows, the split ones, are fewer than the columns (a spanning tree has rows + cols − 1
// arcs), so the columns and the split rows form a small core, whatever the number of rows.
//
// Core nodes are numbered columns first, then split rows. A node's potential is v for a column and −u for a row, so
// that all nodes of a subtree shift by the same amount; a leaf row's u is its cost to its home minus the home's v. Each
// row stores the node it depends on (its anchor: itself, or its home) and the offset to add (its base).
//
// Each core arc has a slot; each core node stores the arcs on its path to the root as a bit mask over slots. The cycle
// closed by an entering arc is the exclusive or of two masks; a subtree consists of the nodes whose mask has the bit of
// the arc above it; reattaching it elsewhere is an exclusive or with the same mask for all its nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "basis.hpp"
#include "kernels.hpp"

namespace tfgw {

template <int W>
class MaskTree {
 public:
  static constexpr int kMaxCols = 32 * W;

  void build(int rows, int cols, const std::vector<Arc>& arcs) {
    step_ = padded(cols);
    std::vector<int32_t> degree(rows, 0);
    for (const Arc& a : arcs) ++degree[a.row];
    anchor_.assign(rows, -1);
    base_.assign(rows, 0.0);
    supply_.assign(rows, 0);
    split_.clear();
    std::vector<Arc> core_arcs;
    core_arcs.reserve(arcs.size());
    for (const Arc& a : arcs) {
      supply_[a.row] += a.flow;
      if (degree[a.row] == 1) {
        anchor_[a.row] = a.col;
        continue;
      }
      if (anchor_[a.row] < 0) {
        anchor_[a.row] = step_ + int32_t(split_.size());
        split_.push_back({a.row, degree[a.row], 0});
      }
      core_arcs.push_back({anchor_[a.row] - step_, a.col, a.flow});
    }
    mask_.assign(int64_t(W) * 2 * step_, 0);
    potential_.assign(2 * step_, 0.0);
    row_is_child_ = {};
    free_.clear();
    for (int slot = 2 * step_ - 1; slot >= 0; --slot) free_.push_back(slot);
    arcs_.resize(2 * step_);
    flow_.resize(2 * step_);
    used_ = {};
    for (const RootedArc& a : from_root_down(int(split_.size()), cols, core_arcs)) {
      const int row = step_ + a.arc.row, col = a.arc.col;
      const int slot = take_slot(split_[a.arc.row].row, col, a.arc.flow);
      split_[a.arc.row].slots ^= slot;
      Bits bits = path(a.row_is_child ? col : row);
      flip(bits, slot);
      set_path(a.row_is_child ? row : col, bits);
      if (a.row_is_child) flip(row_is_child_, slot);
    }
    root_ = cols - 1;
  }

  // Returns the largest cost on the tree, in absolute value.
  double compute_potentials(const double* cost, int ld) {
    cost_ = cost;
    ld_ = ld;
    potential_[root_] = 0;
    double largest = 0;
    double *const potential = potential_.data(), *const base = base_.data();
    const int32_t* const anchor = anchor_.data();
    order_arcs_by_depth();
    for (const OrderedArc& a : order_) {  // without branches: which end is the child would be unpredictable
      const double c = cost[int64_t(a.row) * ld + a.col];
      const int above = anchor[a.row] ^ a.col ^ a.below;
      potential[a.below] = potential[above] + kSign[a.below >= step_] * c;
      largest = std::max(largest, std::abs(c));
    }
    const int rows = int(anchor_.size()), root = root_, step = step_;
    for (int row = 0; row < rows; ++row) {
      const int node = anchor[row];
      base[row] = kIfLeaf[node < step] * cost[int64_t(row) * ld + std::min(node, root)];
      largest = std::max(largest, std::abs(base[row]));
    }
    return largest;
  }

  double row_potential(int row) const { return base_[row] - potential_[anchor_[row]]; }
  const double* col_potentials() const { return potential_.data(); }

  // Brings arc (row, col), of the given reduced cost, into the basis.
  void pivot(int row, int col, double reduced) {
    const int own_arc = is_leaf(row) ? join_core(row) : -1;
    const Bits from_row = path(anchor_[row]), from_col = path(col);
    Bits cycle, losing;  // an arc loses flow if its row is its child on the row's side, its parent on the column's
    for (int w = 0; w < W; ++w) {
      cycle[w] = from_row[w] ^ from_col[w];
      losing[w] = cycle[w] & ~(from_row[w] ^ row_is_child_[w]);
    }
    const int leaving = blocking_slot(losing, from_row);
    const bool row_side = test(from_row, leaving);
    const int64_t pushed = flow_[leaving];
    for_each_slot(cycle, [&](int s) { flow_[s] += test(losing, s) ? -pushed : pushed; });
    if (leaving == own_arc) {  // the row only changes its home
      arcs_[leaving].col = col;
      leave_core(row, leaving);
      return;
    }
    // Arcs between the entering arc's end and the cut now point the other way.
    const Bits& in = row_side ? from_row : from_col;
    const Bits top = path(child(leaving));
    for (int w = 0; w < W; ++w) row_is_child_[w] ^= in[w] ^ top[w];
    Bits change = cycle;
    flip(change, leaving);
    kernels().move_subtree(W, 2 * step_, leaving, change.data(), kSign[row_side] * reduced, mask_.data(),
                           potential_.data());
    row_is_child_[leaving / 64] ^= uint64_t(test(row_is_child_, leaving) != row_side) << (leaving % 64);
    SplitRow& winner = split_[anchor_[row] - step_];
    SplitRow& loser = split_[anchor_[arcs_[leaving].row] - step_];
    arcs_[leaving] = {int32_t(row), int32_t(col)};
    flow_[leaving] = pushed;
    ++winner.degree;
    winner.slots ^= leaving;
    --loser.degree;
    loser.slots ^= leaving;
    if (loser.degree == 1) leave_core(loser.row, loser.slots);
  }

  // Split rows are visited too, as if they had an arc without flow, because a branch for them would be unpredictable.
  template <class Visit>
  void for_each_arc(Visit visit) const {
    const int rows = int(anchor_.size()), root = root_, step = step_;
    const int32_t* const anchor = anchor_.data();
    const int64_t *const supply = supply_.data(), *const flow = flow_.data();
    const Ends* const arcs = arcs_.data();
    for (int row = 0; row < rows; ++row) {
      const int node = anchor[row];
      visit(row, std::min(node, root), (node < step) * supply[row]);
    }
    for_each_slot(used_, [&](int s) { visit(arcs[s].row, arcs[s].col, flow[s]); });
  }

 private:
  static constexpr double kSign[2] = {1.0, -1.0}, kIfLeaf[2] = {0.0, 1.0};
  using Bits = std::array<uint64_t, W>;
  struct Ends {
    int32_t row, col;
  };
  struct OrderedArc {
    int32_t row, col, below;  // below: the child
  };
  struct SplitRow {
    int32_t row, degree;
    int32_t slots;  // exclusive or of its arcs' slots: the slot itself if one arc is left
  };

  static bool test(const Bits& bits, int slot) { return bits[slot / 64] >> (slot % 64) & 1; }
  static void flip(Bits& bits, int slot) { bits[slot / 64] ^= uint64_t(1) << (slot % 64); }

  template <class Visit>
  static void for_each_slot(const Bits& bits, Visit visit) {
    for (int w = 0; w < W; ++w)
      for (uint64_t left = bits[w]; left; left &= left - 1) visit(64 * w + __builtin_ctzll(left));
  }

  bool is_leaf(int row) const { return anchor_[row] < step_; }
  int home(int row) const { return std::min(anchor_[row], root_); }  // for a split row, some column
  Bits path(int node) const {
    Bits bits;
    for (int w = 0; w < W; ++w) bits[w] = mask_[int64_t(w) * 2 * step_ + node];
    return bits;
  }
  void set_path(int node, const Bits& bits) {
    for (int w = 0; w < W; ++w) mask_[int64_t(w) * 2 * step_ + node] = bits[w];
  }
  int child(int slot) const {
    const int row = anchor_[arcs_[slot].row], col = arcs_[slot].col;
    return test(row_is_child_, slot) ? row : col;
  }
  int depth(int slot) const {
    int count = 0;
    for (uint64_t word : path(child(slot))) count += __builtin_popcountll(word);
    return count;
  }

  int take_slot(int row, int col, int64_t flow) {
    const int slot = free_.back();
    free_.pop_back();
    flip(used_, slot);
    arcs_[slot] = {int32_t(row), int32_t(col)};
    flow_[slot] = flow;
    return slot;
  }

  // A leaf row becomes a core node below its home. Returns the slot of the arc between them.
  int join_core(int row) {
    const int node = step_ + int(split_.size()), slot = take_slot(row, home(row), supply_[row]);
    Bits bits = path(home(row));
    flip(bits, slot);
    set_path(node, bits);
    flip(row_is_child_, slot);
    potential_[node] = -row_potential(row);
    split_.push_back({int32_t(row), 1, int32_t(slot)});
    anchor_[row] = node;
    base_[row] = 0;
    return slot;
  }

  // A core row whose only arc is `slot` becomes a leaf; the last core row takes its place.
  void leave_core(int row, int slot) {
    const int node = anchor_[row], last = step_ + int(split_.size()) - 1;
    flip(used_, slot);
    flip(row_is_child_, slot);
    free_.push_back(slot);
    if (node != last) {
      split_[node - step_] = split_.back();
      potential_[node] = potential_[last];
      set_path(node, path(last));
      anchor_[split_.back().row] = node;
    }
    set_path(last, Bits{});
    split_.pop_back();
    anchor_[row] = arcs_[slot].col;
    base_[row] = cost_[int64_t(row) * ld_ + home(row)];
  }

  // The losing arc with the least flow. Of several, the last one on the cycle, walked from its apex in the direction of
  // the flow: down to the row, over the new arc, up from the column (Cunningham's rule).
  int blocking_slot(const Bits& losing, const Bits& from_row) const {
    int64_t least = std::numeric_limits<int64_t>::max();
    Bits tied{};
    for_each_slot(losing, [&](int s) {  // without branches: which flow is the least so far would be unpredictable
      const int64_t flow = flow_[s], less = -int64_t(flow < least);
      least ^= (least ^ flow) & less;
      for (uint64_t& word : tied) word &= ~less;
      tied[s / 64] |= uint64_t(flow == least) << (s % 64);
    });
    Bits on_column_side;
    uint64_t any = 0;
    for (int w = 0; w < W; ++w) any |= on_column_side[w] = tied[w] & ~from_row[w];
    int best = -1;
    for_each_slot(any ? on_column_side : tied, [&](int s) {
      if (best < 0 || (depth(s) < depth(best)) == bool(any)) best = s;
    });
    return best;
  }

  // Lists the arcs of the core from the root down.
  void order_arcs_by_depth() {
    std::array<int16_t, 64 * W + 1> start{};
    std::array<int32_t, 64 * W> below;
    std::array<int32_t, 2 * kMaxCols> depth;
    kernels().path_lengths(W, 2 * step_, mask_.data(), depth.data());
    int deepest = 0;
    for_each_slot(used_, [&](int s) {
      below[s] = child(s);
      ++start[depth[below[s]]];
      deepest = std::max(deepest, depth[below[s]]);
    });
    for (int d = 1; d <= deepest; ++d) start[d] += start[d - 1];
    order_.resize(start[deepest]);
    OrderedArc* const order = order_.data();
    for_each_slot(used_, [&](int s) { order[--start[depth[below[s]]]] = {arcs_[s].row, arcs_[s].col, below[s]}; });
  }

  int step_ = 0, root_ = 0, ld_ = 0;
  const double* cost_ = nullptr;
  std::vector<int32_t> anchor_;   // by row
  std::vector<double> base_;
  std::vector<int64_t> supply_;
  std::vector<SplitRow> split_;   // the core's rows: node step_ + index
  Aligned<double> potential_;     // by core node
  Aligned<uint64_t> mask_;        // W blocks of one word per core node
  std::vector<Ends> arcs_;        // by slot
  std::vector<int64_t> flow_;     // by slot
  std::vector<int32_t> free_;
  std::vector<OrderedArc> order_;
  Bits used_{}, row_is_child_{};
};

}  // namespace tfgw

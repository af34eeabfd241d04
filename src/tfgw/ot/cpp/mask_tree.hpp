// A basis for problems of at most 32·W columns (basis.hpp), in which nothing walks the tree.
//
// A row that ships everything to one column, its home, is a leaf: its flow is its supply and its potential follows
// from its home's. All other rows, the split ones, are fewer than the columns (a spanning tree has rows + cols − 1
// arcs), so the columns and the split rows form a small core, whatever the number of rows.
//
// Core nodes are numbered columns first, then split rows. A node's potential is v for a column and −u for a row, so
// that a subtree shifts by one and the same amount; a leaf row's u is its cost to its home less the home's v. Each row
// keeps the node that it depends on (its anchor: itself, or its home) and what to add (its base).
//
// Each core arc has a slot; each core node knows, as a bit mask over slots, the arcs on its path to the root. The
// cycle that an entering arc closes is the exclusive or of two masks; a subtree is every node whose mask has the bit
// of the arc above it; hanging that subtree elsewhere is an exclusive or with one and the same mask for all its nodes.
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
    for (const Arc& a : arcs) {
      supply_[a.row] += a.flow;
      if (degree[a.row] == 1) {
        anchor_[a.row] = a.col;
        continue;
      }
      if (anchor_[a.row] < 0) {
        anchor_[a.row] = step_ + int32_t(split_.size());
        split_.push_back({a.row, degree[a.row]});
      }
      core_arcs.push_back({anchor_[a.row] - step_, a.col, a.flow});
    }
    mask_.assign(int64_t(W) * 2 * step_, 0);
    potential_.assign(2 * step_, 0.0);
    row_is_child_ = {};
    free_.clear();
    for (int slot = 2 * step_ - 1; slot >= 0; --slot) free_.push_back(slot);
    arcs_.resize(2 * step_);
    used_ = {};
    for (const RootedArc& a : from_root_down(int(split_.size()), cols, core_arcs)) {
      const Arc arc = {split_[a.arc.row].row, a.arc.col, a.arc.flow};
      const int slot = take_slot(arc);
      const int row = step_ + a.arc.row;
      Bits bits = path(a.row_is_child ? arc.col : row);
      flip(bits, slot);
      set_path(a.row_is_child ? row : arc.col, bits);
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
    order_slots_by_depth();
    for (int slot : order_) {
      const Arc& a = arcs_[slot];
      const double c = cost[int64_t(a.row) * ld + a.col];
      largest = std::max(largest, std::abs(c));
      if (test(row_is_child_, slot)) {
        potential_[anchor_[a.row]] = potential_[a.col] - c;
      } else {
        potential_[a.col] = potential_[anchor_[a.row]] + c;
      }
    }
    for (int row = 0; row < int(anchor_.size()); ++row) {
      if (!is_leaf(row)) continue;
      base_[row] = cost[int64_t(row) * ld + anchor_[row]];
      largest = std::max(largest, std::abs(base_[row]));
    }
    return largest;
  }

  double row_potential(int row) const { return base_[row] - potential_[anchor_[row]]; }
  const double* col_potentials() const { return potential_.data(); }

  // Brings arc (row, col), of the given reduced cost, into the basis.
  void pivot(int row, int col, double reduced) {
    const int own_arc = is_leaf(row) ? join_core(row) : -1;
    const Bits from_row = path(anchor_[row]), from_col = path(col);
    Bits row_losing, row_gaining, col_losing, col_gaining;  // the cycle's arcs, by side and by what the flow does
    for (int w = 0; w < W; ++w) {
      const uint64_t cycle = from_row[w] ^ from_col[w], up_from_row = row_is_child_[w];
      row_losing[w] = from_row[w] & cycle & up_from_row;
      row_gaining[w] = from_row[w] & cycle & ~up_from_row;
      col_losing[w] = from_col[w] & cycle & ~up_from_row;
      col_gaining[w] = from_col[w] & cycle & up_from_row;
    }
    bool row_side;
    const int leaving = blocking_slot(row_losing, col_losing, row_side);
    const int64_t pushed = arcs_[leaving].flow;
    for_each_slot(row_losing, [&](int s) { arcs_[s].flow -= pushed; });
    for_each_slot(col_losing, [&](int s) { arcs_[s].flow -= pushed; });
    for_each_slot(row_gaining, [&](int s) { arcs_[s].flow += pushed; });
    for_each_slot(col_gaining, [&](int s) { arcs_[s].flow += pushed; });
    if (leaving == own_arc) {  // the row only changes its home
      arcs_[leaving].col = col;
      leave_core(row, leaving);
      return;
    }
    // Arcs between the entering arc's end and the cut now point the other way.
    const Bits& in = row_side ? from_row : from_col;
    const Bits top = path(child(leaving));
    Bits change;
    for (int w = 0; w < W; ++w) {
      row_is_child_[w] ^= in[w] ^ top[w];
      change[w] = from_row[w] ^ from_col[w];
    }
    flip(change, leaving);
    kernels().move_subtree(W, 2 * step_, leaving, change.data(), row_side ? -reduced : reduced, mask_.data(),
                           potential_.data());
    if (test(row_is_child_, leaving) != row_side) flip(row_is_child_, leaving);
    const int loser = arcs_[leaving].row;
    arcs_[leaving] = {int32_t(row), int32_t(col), pushed};
    ++split_[anchor_[row] - step_].degree;
    if (--split_[anchor_[loser] - step_].degree == 1) leave_core(loser, last_arc(loser));
  }

  template <class Visit>
  void for_each_arc(Visit visit) const {
    for (int row = 0; row < int(anchor_.size()); ++row)
      if (is_leaf(row)) visit(row, anchor_[row], supply_[row]);
    for_each_slot(used_, [&](int s) { visit(arcs_[s].row, arcs_[s].col, arcs_[s].flow); });
  }

 private:
  using Bits = std::array<uint64_t, W>;
  struct SplitRow {
    int32_t row, degree;
  };

  static bool test(const Bits& bits, int slot) { return bits[slot / 64] >> (slot % 64) & 1; }
  static void flip(Bits& bits, int slot) { bits[slot / 64] ^= uint64_t(1) << (slot % 64); }

  template <class Visit>
  static void for_each_slot(const Bits& bits, Visit visit) {
    for (int w = 0; w < W; ++w)
      for (uint64_t left = bits[w]; left; left &= left - 1) visit(64 * w + __builtin_ctzll(left));
  }

  bool is_leaf(int row) const { return anchor_[row] < step_; }
  Bits path(int node) const {
    Bits bits;
    for (int w = 0; w < W; ++w) bits[w] = mask_[int64_t(w) * 2 * step_ + node];
    return bits;
  }
  void set_path(int node, const Bits& bits) {
    for (int w = 0; w < W; ++w) mask_[int64_t(w) * 2 * step_ + node] = bits[w];
  }
  int child(int slot) const { return test(row_is_child_, slot) ? anchor_[arcs_[slot].row] : arcs_[slot].col; }
  int depth(int slot) const {
    int count = 0;
    for (uint64_t word : path(child(slot))) count += __builtin_popcountll(word);
    return count;
  }

  int take_slot(const Arc& arc) {
    const int slot = free_.back();
    free_.pop_back();
    flip(used_, slot);
    arcs_[slot] = arc;
    return slot;
  }

  // A leaf row becomes a core node below its home. Returns the slot of the arc between them.
  int join_core(int row) {
    const int node = step_ + int(split_.size()), home = anchor_[row];
    const int slot = take_slot({int32_t(row), int32_t(home), supply_[row]});
    Bits bits = path(home);
    flip(bits, slot);
    set_path(node, bits);
    flip(row_is_child_, slot);
    potential_[node] = -row_potential(row);
    split_.push_back({int32_t(row), 1});
    anchor_[row] = node;
    base_[row] = 0;
    return slot;
  }

  // A core row whose only arc is `slot` becomes a leaf; the last core row takes its place.
  void leave_core(int row, int slot) {
    const int node = anchor_[row], last = step_ + int(split_.size()) - 1, home = arcs_[slot].col;
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
    anchor_[row] = home;
    base_[row] = cost_[int64_t(row) * ld_ + home];
  }

  // The arc of a core row that has only one: the first on its path.
  int last_arc(int row) const {
    int slot = -1;
    for_each_slot(path(anchor_[row]), [&](int s) {
      if (arcs_[s].row == row) slot = s;
    });
    return slot;
  }

  // The losing arc with the least flow. Among several it is the last one met when the cycle is walked from its apex
  // in the direction of the flow: down to the row, over the new arc, up from the column (Cunningham's rule).
  int blocking_slot(const Bits& row_losing, const Bits& col_losing, bool& row_side) const {
    int best = -1;
    int64_t least = std::numeric_limits<int64_t>::max();
    row_side = true;
    for_each_slot(row_losing, [&](int s) {
      const int64_t flow = arcs_[s].flow;
      if (flow < least || (flow == least && depth(s) > depth(best))) best = s, least = flow;
    });
    for_each_slot(col_losing, [&](int s) {
      const int64_t flow = arcs_[s].flow;
      if (flow < least || (flow == least && (row_side || depth(s) < depth(best)))) {
        best = s, least = flow;
        row_side = false;
      }
    });
    return best;
  }

  void order_slots_by_depth() {
    std::array<int32_t, 64 * W + 1> start{};
    std::array<int32_t, 64 * W> depth_of;
    std::array<int32_t, 2 * kMaxCols> node_depth;
    kernels().path_lengths(W, 2 * step_, mask_.data(), node_depth.data());
    int count = 0, deepest = 0;
    for_each_slot(used_, [&](int s) {
      depth_of[s] = node_depth[child(s)];
      ++start[depth_of[s]];
      deepest = std::max(deepest, depth_of[s]);
      ++count;
    });
    for (int d = 1; d <= deepest; ++d) start[d] += start[d - 1];
    order_.resize(count);
    for_each_slot(used_, [&](int s) { order_[--start[depth_of[s]]] = s; });
  }

  int step_ = 0, root_ = 0, ld_ = 0;
  const double* cost_ = nullptr;
  std::vector<int32_t> anchor_;   // by row
  std::vector<double> base_;
  std::vector<int64_t> supply_;
  std::vector<SplitRow> split_;   // the core's rows: node step_ + index
  std::vector<double> potential_; // by core node
  std::vector<uint64_t> mask_;    // W blocks of one word per core node
  std::vector<Arc> arcs_;         // by slot
  std::vector<int32_t> free_, order_;
  Bits used_{}, row_is_child_{};
};

}  // namespace tfgw

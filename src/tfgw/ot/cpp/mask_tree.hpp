// A basis of at most 64·W nodes (basis.hpp), in which nothing walks the tree.
//
// Each arc has a slot; each node knows, as a bit mask over slots, the arcs on its path to the root. The cycle that an
// entering arc closes is the exclusive or of two masks; a subtree is every node whose mask has the bit of the arc
// above it; hanging that subtree elsewhere is an exclusive or with one and the same mask for all its nodes.
#pragma once

#include <array>
#include <limits>

#include "basis.hpp"
#include "kernels.hpp"

namespace tfgw {

template <int W>
class MaskTree {
 public:
  static constexpr int kMaxNodes = 64 * W;

  void build(int rows, int cols, const std::vector<Arc>& arcs) {
    row_step_ = padded(rows);
    col_step_ = padded(cols);
    row_mask_.assign(int64_t(W) * row_step_, 0);
    col_mask_.assign(int64_t(W) * col_step_, 0);
    arcs_.clear();
    row_is_child_ = {};
    for (const RootedArc& a : from_root_down(rows, cols, arcs)) {
      const int slot = int(arcs_.size());
      Bits path = a.row_is_child ? col_path(a.arc.col) : row_path(a.arc.row);
      flip(path, slot);
      set_path(a, path);
      if (a.row_is_child) flip(row_is_child_, slot);
      arcs_.push_back(a.arc);
    }
  }

  void potentials(const double* cost, int ld, double* u, double* v) {
    v[col_root()] = 0;
    order_slots_by_depth();
    for (int slot : order_) {
      const Arc& a = arcs_[slot];
      const double c = cost[int64_t(a.row) * ld + a.col];
      if (test(row_is_child_, slot)) {
        u[a.row] = c - v[a.col];
      } else {
        v[a.col] = c - u[a.row];
      }
    }
  }

  // Brings arc (row, col), of the given reduced cost, into the basis.
  void pivot(int row, int col, double reduced, double* u, double* v) {
    const Bits from_row = row_path(row), from_col = col_path(col);
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

    // Arcs between the entering arc's end and the cut now point the other way.
    const Bits& in = row_side ? from_row : from_col;
    const Bits top = child_path(leaving);
    Bits change;
    for (int w = 0; w < W; ++w) {
      row_is_child_[w] ^= in[w] ^ top[w];
      change[w] = from_row[w] ^ from_col[w];
    }
    flip(change, leaving);
    const double shift = row_side ? reduced : -reduced;
    const Kernels& fast = kernels();
    fast.move_subtree(W, row_step_, leaving, change.data(), shift, row_mask_.data(), u);
    fast.move_subtree(W, col_step_, leaving, change.data(), -shift, col_mask_.data(), v);
    if (test(row_is_child_, leaving) != row_side) flip(row_is_child_, leaving);
    arcs_[leaving] = {int32_t(row), int32_t(col), pushed};
  }

  template <class Visit>
  void for_each_arc(Visit visit) const {
    for (const Arc& a : arcs_) visit(a.row, a.col, a.flow);
  }

 private:
  using Bits = std::array<uint64_t, W>;

  static bool test(const Bits& bits, int slot) { return bits[slot / 64] >> (slot % 64) & 1; }
  static void flip(Bits& bits, int slot) { bits[slot / 64] ^= uint64_t(1) << (slot % 64); }

  template <class Visit>
  static void for_each_slot(const Bits& bits, Visit visit) {
    for (int w = 0; w < W; ++w)
      for (uint64_t left = bits[w]; left; left &= left - 1) visit(64 * w + __builtin_ctzll(left));
  }

  Bits row_path(int row) const { return path(row_mask_, row_step_, row); }
  Bits col_path(int col) const { return path(col_mask_, col_step_, col); }
  Bits child_path(int slot) const {
    return test(row_is_child_, slot) ? row_path(arcs_[slot].row) : col_path(arcs_[slot].col);
  }
  static Bits path(const std::vector<uint64_t>& masks, int step, int node) {
    Bits bits;
    for (int w = 0; w < W; ++w) bits[w] = masks[int64_t(w) * step + node];
    return bits;
  }
  void set_path(const RootedArc& a, const Bits& bits) {
    for (int w = 0; w < W; ++w)
      (a.row_is_child ? row_mask_[int64_t(w) * row_step_ + a.arc.row]
                      : col_mask_[int64_t(w) * col_step_ + a.arc.col]) = bits[w];
  }
  int col_root() const {  // the only column without a path
    int col = 0;
    while (col_path(col) != Bits{}) ++col;
    return col;
  }
  int depth(int slot) const {
    const Bits bits = child_path(slot);
    int count = 0;
    for (uint64_t word : bits) count += __builtin_popcountll(word);
    return count;
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
    const int count = int(arcs_.size());
    std::array<int32_t, kMaxNodes + 1> start{};
    std::array<int32_t, kMaxNodes> depth_of;
    kernels().path_lengths(W, row_step_, row_mask_.data(), row_depth_.data());
    kernels().path_lengths(W, col_step_, col_mask_.data(), col_depth_.data());
    for (int s = 0; s < count; ++s) {
      depth_of[s] = test(row_is_child_, s) ? row_depth_[arcs_[s].row] : col_depth_[arcs_[s].col];
      ++start[depth_of[s]];
    }
    for (int d = 1; d <= kMaxNodes; ++d) start[d] += start[d - 1];
    order_.resize(count);
    for (int s = 0; s < count; ++s) order_[--start[depth_of[s]]] = s;
  }

  int row_step_ = 0, col_step_ = 0;
  std::vector<uint64_t> row_mask_, col_mask_;  // W blocks of one word per node
  std::vector<Arc> arcs_;                      // by slot
  Bits row_is_child_{};
  std::vector<int32_t> order_;
  std::array<int32_t, kMaxNodes + kLane> row_depth_, col_depth_;
};

}  // namespace tfgw

// A basis of the transportation problem for graphs small enough that every node, row or column, has a lane: no row is
// treated as a leaf (core_tree.cuh), so nothing ever moves in or out of a core. Columns are nodes 0 … P − 1, rows come
// behind them.
// Slot and node 32 j + l belong to lane l. Paths to the root and potentials, which other lanes read, are in shared
// memory; their owners keep a copy in registers.
#pragma once

#include "bits.cuh"

namespace tfgw {

template <int P, int W>  // up to 32 W nodes
class FlatTree {
  static constexpr int kNodes = 32 * W;
  using Mask = Bits<W>;

 public:
  static constexpr int kColumns = P;
  static constexpr int kMaxRows = kNodes - P;
  struct Memory {
    Mask path[kNodes];          // arcs between node and root, as a mask over slots
    double potential[kNodes];   // v of a column, −u of a row
    int parent[kNodes];
    u32 support[kMaxRows];      // columns that a row ships to
    int begin[kMaxRows + 1];
  };

  TFGW_DEVICE explicit FlatTree(Memory& memory) : t_(memory) {}

  TFGW_DEVICE void reset(int rows, int cols, const i64*, const RowArrays&) {
    rows_ = rows, root_ = cols - 1, arcs_ = 0;
    row_is_child_ = {};
#pragma unroll
    for (int j = 0; j < W; ++j) {
      path_[j] = {}, potential_[j] = 0, end_[j] = 0, flow_[j] = 0;
      t_.path[lane() + 32 * j] = {}, t_.potential[lane() + 32 * j] = 0;
    }
    sync();
  }

  // The first basis, arc by arc. Followed by `root`.
  TFGW_DEVICE void add_arc(int row, int col, i64 flow, bool, bool) { set_arc(arcs_++, row, col, flow); }

  // Hangs all nodes under the last column, level by level.
  TFGW_DEVICE void root() {
    while (true) {
      bool any = false;
      Mask path[W];
      int child[W];
#pragma unroll
      for (int j = 0; j < W; ++j) {
        const int row = row_node(end_[j]), col = column(end_[j]);
        const Mask of_row = t_.path[row], of_col = t_.path[col];
        const bool row_reached = of_row.any(), col_reached = col == root_ || of_col.any();
        const bool reaches = lane() + 32 * j < arcs_ && row_reached != col_reached;
        row_is_child_.word[j] |= ballot(reaches && col_reached);
        child[j] = !reaches ? -1 : col_reached ? row : col;
        path[j] = col_reached ? of_col : of_row;
        path[j].word[j] |= u32(1) << lane();
        any = any || reaches;
      }
      sync();
#pragma unroll
      for (int j = 0; j < W; ++j)
        if (child[j] >= 0) t_.path[child[j]] = path[j];
      sync();
      if (!ballot(any)) break;
    }
#pragma unroll
    for (int j = 0; j < W; ++j) path_[j] = t_.path[lane() + 32 * j];
  }

  // Potentials for new costs, every node's the sum of the steps above it: each round adds what the node twice as far up
  // has gathered. Returns the largest cost on the tree, in absolute value.
  TFGW_DEVICE double compute_potentials(const double* cost) {
    double largest = 0;
#pragma unroll
    for (int j = 0; j < W; ++j) {
      if (lane() + 32 * j >= arcs_) continue;
      const int row = row_node(end_[j]), col = column(end_[j]);
      const double c = cost[(row - P) * P + col];
      largest = larger(largest, magnitude(c));
      const bool down_to_row = row_is_child_.has_mine(j);
      t_.parent[down_to_row ? row : col] = down_to_row ? col : row;
      t_.potential[down_to_row ? row : col] = down_to_row ? -c : c;
    }
    largest = warp_max(largest);
    if (lane() == 0) t_.parent[root_] = root_, t_.potential[root_] = 0;
    sync();
    int up[W];
#pragma unroll
    for (int j = 0; j < W; ++j) {
      const int node = lane() + 32 * j;
      const bool used = node <= root_ || (node >= P && node < P + rows_);
      up[j] = used ? t_.parent[node] : root_;
      potential_[j] = used ? t_.potential[node] : 0.0;
    }
    while (true) {
      bool more = false;
      double above[W];
#pragma unroll
      for (int j = 0; j < W; ++j) {
        above[j] = t_.potential[up[j]];
        up[j] = t_.parent[up[j]];
        more = more || up[j] != root_;
      }
      sync();
#pragma unroll
      for (int j = 0; j < W; ++j) {
        const int node = lane() + 32 * j;
        potential_[j] += above[j];
        t_.potential[node] = potential_[j], t_.parent[node] = up[j];
      }
      sync();
      if (!ballot(more)) return largest;
    }
  }

  TFGW_DEVICE double row_potential(int row) const { return -t_.potential[P + row]; }
  TFGW_DEVICE void hold_row_potentials(int, int) const {}
  TFGW_DEVICE double held_row_potential(int row) const { return row_potential(row); }
  TFGW_DEVICE double col_potential(int col) const { return t_.potential[col]; }
  TFGW_DEVICE double my_col_potential(int q) const { return potential_[q]; }  // lane + 32 q's

  // Brings arc (row, col), of the given reduced cost, into the basis.
  TFGW_DEVICE void pivot(int row, int col, double reduced) {
    const Mask from_row = t_.path[P + row], from_col = t_.path[col];
    bool row_side;
    i64 pushed;
    const auto depth = [&](int j) {
      return t_.path[row_is_child_.has_mine(j) ? row_node(end_[j]) : column(end_[j])].count();
    };
    const int leaving = blocking_slot(from_row, from_col, row_is_child_, flow_, depth, row_side, pushed);
    const u32 ends = from_owner(end_, leaving);
    const Mask top = t_.path[row_is_child_.has(leaving) ? row_node(ends) : column(ends)];
    const double shift = row_side ? -reduced : reduced;
    Mask leaving_bit{}, change;
    leaving_bit.flip(leaving);
#pragma unroll
    for (int w = 0; w < W; ++w) change.word[w] = from_row.word[w] ^ from_col.word[w];
    push(from_row, from_col, row_is_child_, pushed, flow_);
#pragma unroll
    for (int w = 0; w < W; ++w) {
      // Arcs between the entering arc's end and the cut turn round; the leaving arc's slot is the entering one's now.
      row_is_child_.word[w] ^= (row_side ? from_row.word[w] : from_col.word[w]) ^ top.word[w];
      row_is_child_.word[w] = row_side ? row_is_child_.word[w] | leaving_bit.word[w]
                                       : row_is_child_.word[w] & ~leaving_bit.word[w];
      change.word[w] ^= leaving_bit.word[w];
    }
    set_arc(leaving, row, col, pushed);
    sync();
#pragma unroll
    for (int j = 0; j < W; ++j) {  // every node below the cut hangs elsewhere
      u32 below = 0;
#pragma unroll
      for (int w = 0; w < W; ++w) below |= path_[j].word[w] & leaving_bit.word[w];
      if (!below) continue;
#pragma unroll
      for (int w = 0; w < W; ++w) path_[j].word[w] ^= change.word[w];
      potential_[j] += shift;
      t_.path[lane() + 32 * j] = path_[j], t_.potential[lane() + 32 * j] = potential_[j];
    }
    sync();
  }

  // Calls visit(position, row, col, flow) for every arc that carries flow, by row and column; returns their number.
  template <class Visit>
  TFGW_DEVICE int for_each_arc(Visit visit) const {
    static_assert(P <= 32, "a row's columns are the bits of a word");
    for (int i = lane(); i < rows_; i += 32) t_.support[i] = 0;
    sync();
#pragma unroll
    for (int j = 0; j < W; ++j)
      if (flow_[j] > 0) set_bits(&t_.support[row_node(end_[j]) - P], u32(1) << column(end_[j]));
    sync();
    int total = 0;
    for (int first = 0; first < rows_; first += 32) {
      const int i = first + lane(), count = i < rows_ ? bits_set(t_.support[i]) : 0;
      const int upto = running_sum(count);
      if (i < rows_) t_.begin[i] = total + upto - count;
      total += from_lane(upto, 31);
    }
    if (lane() == 0) t_.begin[rows_] = total;
    sync();
#pragma unroll
    for (int j = 0; j < W; ++j) {
      if (flow_[j] <= 0) continue;
      const int row = row_node(end_[j]) - P, col = column(end_[j]);
      visit(t_.begin[row] + bits_set(t_.support[row] & ((u32(1) << col) - 1)), row, col, flow_[j]);
    }
    return total;
  }

  TFGW_DEVICE const int* row_begin() const { return t_.begin; }  // after `for_each_arc`: first position of each row

 private:
  // An arc's two nodes in one word.
  TFGW_DEVICE static int row_node(u32 ends) { return int(ends >> 16); }
  TFGW_DEVICE static int column(u32 ends) { return int(ends & 0xffff); }

  TFGW_DEVICE void set_arc(int slot, int row, int col, i64 flow) {
#pragma unroll
    for (int j = 0; j < W; ++j) {
      const bool mine = slot == lane() + 32 * j;
      end_[j] = mine ? u32(P + row) << 16 | u32(col) : end_[j];
      flow_[j] = mine ? flow : flow_[j];
    }
  }

  Memory& t_;
  int rows_ = 0, root_ = 0, arcs_ = 0;
  Mask row_is_child_{};   // by slot; the same on every lane
  Mask path_[W]{};        // of this lane's nodes
  double potential_[W]{};
  u32 end_[W]{};          // of this lane's arcs
  i64 flow_[W]{};
};

}  // namespace tfgw

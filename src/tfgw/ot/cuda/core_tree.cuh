// A basis of the transportation problem, the warp's counterpart of cpp/mask_tree.hpp, which explains it: rows that ship
// everything to one column are leaves; the others and the columns form a small core, whose nodes store their path to
// the root as a bit mask over arcs ("slots"). Here slot and node 32 j + l are in the registers of lane l: bit l of word
// j of a mask is the lane's own slot, so no lookup is needed. Only data read by other lanes or warps, potentials and
// the parent of each row, is in memory.
#pragma once

#include "initial_state.cuh"
#include "bits.cuh"
#include "team.cuh"

namespace tfgw {

// An entering arc closes a cycle: the arcs on the path to the root from its row or from its column, but not from both.
// Returns the losing arc with the least flow, or −1. Of several, it is the last one on the cycle, walked from its apex
// in the direction of the flow: down to the row, over the new arc, up from the column (Cunningham's rule). `depth(j)`
// is the depth of the lower node of this lane's arc j; all lanes call it together.
template <int N, class Depth>
TFGW_DEVICE int blocking_slot(const Bits<N>& from_row, const Bits<N>& from_col, const Bits<N>& row_is_child,
                              const i64 (&flows)[N], Depth depth, bool& row_side, i64& flow) {
  u64 mine[N];
  u64 least = ~u64(0);
#pragma unroll
  for (int j = 0; j < N; ++j) {
    // On the row's side, arcs that lead up from a row lose flow; on the column's side, those that lead down to one.
    const u32 losing = (from_row.word[j] ^ from_col.word[j]) & ~(from_row.word[j] ^ row_is_child.word[j]);
    mine[j] = losing >> lane() & 1 ? u64(flows[j]) : ~u64(0);
    least = mine[j] < least ? mine[j] : least;
  }
  const u64 lowest = warp_min(least);
  flow = i64(lowest);
  if (lowest == ~u64(0)) return -1;
  int slot = -1, holders = 0;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const u32 all = ballot(mine[j] == lowest);
    if (all) slot = lowest_bit(all) + 32 * j;
    holders += popc(all);
  }
  if (holders > 1) {
    u32 first = ~0u;
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const int below = depth(j);
      const u32 rank = u32(from_row.has_mine(j) ? 64 * N - below : below) << 16 | u32(lane() + 32 * j);
      first = mine[j] == lowest && rank < first ? rank : first;
    }
    slot = int(warp_min(first) & 0xffff);
  }
  row_side = from_row.has(slot);
  return slot;
}

// Sends flow along the cycle.
template <int N>
TFGW_DEVICE void push(const Bits<N>& from_row, const Bits<N>& from_col, const Bits<N>& row_is_child, i64 flow,
                      i64 (&flows)[N]) {
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const u32 cycle = from_row.word[j] ^ from_col.word[j], gaining = from_row.word[j] ^ row_is_child.word[j];
    flows[j] += !(cycle >> lane() & 1) ? 0 : gaining >> lane() & 1 ? flow : -flow;
  }
}

// Potentials of a basis in which rows outside the core have their own cost and the potential of their column.
template <class Memory>
class CoreView {
 public:
  TFGW_DEVICE CoreView(const Memory* memory, int, const RowArrays& at) : t_(memory), at_(at) {}
  TFGW_DEVICE double row(int i) const { return at_.base[i] - t_->potential[at_.anchor[i]]; }
  TFGW_DEVICE void cache_rows(int first, int last) const {  // for `cached_row`, which is faster
    for (int i = first + lane(); i < last; i += 32) at_.u[i] = row(i);
    sync_warp();
  }
  TFGW_DEVICE double cached_row(int i) const { return at_.u[i]; }
  TFGW_DEVICE double col(int k) const { return t_->potential[k]; }

 private:
  const Memory* const t_;
  const RowArrays at_;
};

// Pivots on each column's candidate, most negative first, while they remain improving. `eps` increases in proportion to
// the costs that enter. `pivot(row, col, reduced cost)` returns whether flow moved. Returns false if no candidate was
// improving. Sets `moved` if flow moved.
template <int P, int N, class View, class Pivot>
TFGW_DEVICE bool pivot_on_lowest(const Candidates<N>& found, double unit, double& eps, bool& moved,
                                 const View& potentials, Pivot pivot) {
  bool improved = false;
  while (true) {
    double lowest = -eps;
    int mine = -1;  // which of this lane's columns
#pragma unroll
    for (int q = 0; q < N; ++q) {
      const int row = found.row[q] < 0 ? 0 : found.row[q];
      const double reduced = found.cost[q] - potentials.row(row) - potentials.col((lane() + 32 * q) % P);
      if (found.row[q] >= 0 && reduced < lowest) lowest = reduced, mine = q;
    }
    // Negative doubles: the larger the bits, the lower the number.
    const u64 key = mine >= 0 ? ~bits_of(lowest) : ~u64(0);
    if (!ballot(mine >= 0)) return improved;
    improved = true;
    const int owner = lane_of_least(key, u32(lane() + 32 * (mine < 0 ? 0 : mine))), q = shfl(mine, owner);
    const int row = shfl(pick(found.row, q), owner);
    double cost = 0;
#pragma unroll
    for (int s = 0; s < N; ++s)
      if (s == q) cost = found.cost[s];
    moved = pivot(row, owner + 32 * q, shfl(lowest, owner)) || moved;
    eps = larger(eps, unit * magnitude(shfl(cost, owner)));
  }
}

template <int P>
class CoreTree {
  static constexpr int kNodes = 2 * P;           // columns first, then split rows
  static constexpr int kShare = kNodes / 32;     // nodes per lane, slots per lane, words per mask
  static constexpr int kColumnsPerLane = Shape<P>::kColumnsPerLane;
  using Mask = Bits<kShare>;

 public:
  using Team = tfgw::Team<1>;
  static constexpr int kColumns = P;
  struct Memory {
    double potential[kNodes];  // v of a column, −u of a split row
  };

  using View = CoreView<Memory>;

  // For `rows` rows, `cols` of the columns in use. The arrays have one entry per row.
  TFGW_DEVICE CoreTree(Memory* memory, int rows, int cols, const i64* supply, const RowArrays& at)
      : t_(memory), rows_(rows), root_(cols - 1), supply_(supply), anchor_(at.anchor), base_(at.base) {}

  // The first basis, of `count` arcs.
  TFGW_DEVICE void begin(const Arc* arcs, int count) {
    split_ = 0;
    used_ = {}, row_is_child_ = {};
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      path_[j] = {};
      t_->potential[lane() + 32 * j] = 0;
    }
    sync_warp();
#pragma unroll 1
    for (int a = 0; a < count; ++a) {
      const Arc arc = arcs[a];
      const bool first = a == 0 || arcs[a - 1].row != arc.row, last = a + 1 == count || arcs[a + 1].row != arc.row;
      add_arc(arc.row, arc.col, arc.flow, first, last);
    }
    root();
  }

  // Potentials for new costs. Returns the largest cost on the tree, in absolute value.
  TFGW_DEVICE double compute_potentials(const double* cost) {
    cost_ = cost;
    double largest = 0;
    int depth[kShare], child[kShare], parent[kShare];
    double step[kShare];
    u32 deepest = 0;
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      const bool used = used_.has_mine(j), down_to_row = row_is_child_.has_mine(j);
      const int node = used ? anchor_[row_[j]] : 0;
      const double c = used ? cost[i64(row_[j]) * P + col_[j]] : 0.0;
      largest = larger(largest, magnitude(c));
      child[j] = down_to_row ? node : col_[j], parent[j] = down_to_row ? col_[j] : node;
      step[j] = down_to_row ? -c : c;
    }
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      depth[j] = depth_of_each(child[j]);
      if (!used_.has_mine(j)) depth[j] = 0;
      deepest = u32(depth[j]) > deepest ? u32(depth[j]) : deepest;
    }
    deepest = warp_max(deepest);
    if (lane() == 0) t_->potential[root_] = 0;
    for (int i = lane(); i < rows_; i += 32) {
      const int home = anchor_[i];
      const double c = home < P ? cost[i64(i) * P + home] : 0.0;
      base_[i] = c;
      largest = larger(largest, magnitude(c));
    }
    sync_warp();
    for (int d = 1; d <= int(deepest); ++d) {
#pragma unroll
      for (int j = 0; j < kShare; ++j)
        if (depth[j] == d) t_->potential[child[j]] = t_->potential[parent[j]] + step[j];
      sync_warp();
    }
    return warp_max(largest);
  }

  TFGW_DEVICE void publish() const {}  // potentials are always in memory

  // See pivot_on_lowest.
  TFGW_DEVICE bool pivot_on(const Candidates<kColumnsPerLane>& found, double unit, double& eps, bool& moved) {
    return pivot_on_lowest<P>(found, unit, eps, moved, View(t_, 0, {anchor_, base_, nullptr}),
                              [&](int row, int col, double reduced) { return pivot(row, col, reduced); });
  }

  // Calls visit(row, col, flow, whether the row is below the column) for every arc, on the lane that holds it. The only
  // arc of a row outside the core leads up to its column.
  template <class Visit>
  TFGW_DEVICE void for_each_arc(Visit visit) const {
    for (int i = lane(); i < rows_; i += 32)
      if (anchor_[i] < P) visit(i, anchor_[i], supply_[i], true);
#pragma unroll
    for (int j = 0; j < kShare; ++j)
      if (used_.has_mine(j)) visit(row_[j], col_[j], flow_[j], row_is_child_.has_mine(j));
  }
  // The same with visit(flow, load(row, col)), after meanwhile().
  template <class Load, class Meanwhile, class Visit>
  TFGW_DEVICE void for_each_arc(Load load, Meanwhile meanwhile, Visit visit) const {
    meanwhile();
    for_each_arc([&](int row, int col, i64 flow, bool) { visit(flow, load(row, col)); });
  }

 private:
  // Arcs come row by row: one arc makes a leaf, more make a core row.
  TFGW_DEVICE void add_arc(int row, int col, i64 flow, bool first_of_row, bool last_of_row) {
    if (first_of_row && last_of_row) {
      if (lane() == 0) anchor_[row] = col;
      return;
    }
    if (first_of_row) {
      if (lane() == 0) anchor_[row] = P + split_;
      set_split(P + split_, row, 0);
      ++split_;
    }
    set_arc(take_slot(), row, col, flow);
    change_degree(P + split_ - 1, 1);
  }

  // Hangs all core nodes under the last column, level by level.
  TFGW_DEVICE void root() {
    sync_warp();
    Mask left{};  // nodes not reached yet
    for (int c = 0; c < root_; ++c) left.flip(c);
    for (int s = 0; s < split_; ++s) left.flip(P + s);
    int node[kShare];  // of the row of each arc of this lane
#pragma unroll
    for (int j = 0; j < kShare; ++j) node[j] = used_.has_mine(j) ? anchor_[row_[j]] : 0;
    while (true) {
      u32 reaching[kShare], to_row[kShare];
      u32 any = 0;
#pragma unroll
      for (int j = 0; j < kShare; ++j) {
        const bool row_left = left.has(node[j]), col_left = left.has(col_[j]);
        const bool reaches = used_.has_mine(j) && row_left != col_left;
        any |= reaching[j] = ballot(reaches);
        to_row[j] = ballot(reaches && row_left);
      }
      if (!any) break;
#pragma unroll
      for (int j = 0; j < kShare; ++j) {
        row_is_child_.word[j] |= to_row[j];
        for (u32 waiting = reaching[j]; waiting; waiting &= waiting - 1) {
          const int owner = lowest_bit(waiting);
          const bool down_to_row = to_row[j] >> owner & 1;
          const int row = shfl(node[j], owner), col = shfl(col_[j], owner);
          Mask path = path_of(down_to_row ? col : row);
          path.flip(owner + 32 * j);
          set_path(down_to_row ? row : col, path);
          left.flip(down_to_row ? row : col);
        }
      }
    }
  }

  TFGW_DEVICE double row_potential(int row) const { return base_[row] - t_->potential[anchor_[row]]; }

  // Brings arc (row, col), of the given reduced cost, into the basis. Returns whether that moves flow.
  TFGW_DEVICE bool pivot(int row, int col, double reduced) {
    int node = anchor_[row];
    const bool leaf = node < P;
    const i64 own = leaf ? supply_[row] : 0;  // a leaf's only arc carries the row's whole supply
    Mask from_row = path_of(node);
    const Mask from_col = path_of(col);
    bool row_side;
    i64 pushed;
    const auto depth = [&](int j) { return depth_of_each(row_is_child_.has_mine(j) ? anchor_[row_[j]] : col_[j]); };
    const int leaving = blocking_slot(from_row, from_col, row_is_child_, flow_, depth, row_side, pushed);
    if (leaf && (leaving < 0 || own < pushed || (own == pushed && row_side))) {  // the row only changes its home
      push(from_row, from_col, row_is_child_, own, flow_);
      sync_warp();  // all lanes have read the old home
      if (lane() == 0) anchor_[row] = col, base_[row] = cost_[i64(row) * P + col];
      sync_warp();
      return own > 0;
    }
    if (leaf) node = join_core(row, node, from_row);
    push(from_row, from_col, row_is_child_, pushed, flow_);
    const int loser = from_owner(row_, leaving), loser_node = anchor_[loser];
    const Mask top = path_of(row_is_child_.has(leaving) ? loser_node : from_owner(col_, leaving));
    Mask change;
#pragma unroll
    for (int w = 0; w < kShare; ++w) {
      // Arcs between the entering arc's end and the cut change direction.
      row_is_child_.word[w] ^= (row_side ? from_row.word[w] : from_col.word[w]) ^ top.word[w];
      change.word[w] = from_row.word[w] ^ from_col.word[w];
    }
    change.flip(leaving);
    move_subtree(leaving, change, row_side ? -reduced : reduced);
    if (row_is_child_.has(leaving) != row_side) row_is_child_.flip(leaving);
    set_arc(leaving, row, col, pushed);
    if (loser != row) {
      change_degree(node, 1);
      if (change_degree(loser_node, -1) == 1) {
        sync_warp();
        leave_core(loser, loser_node);
      }
    }
    sync_warp();
    return pushed > 0;
  }

  TFGW_DEVICE Mask path_of(int node) const {
    Mask path;
#pragma unroll
    for (int w = 0; w < kShare; ++w) {
      u32 words[kShare];
#pragma unroll
      for (int j = 0; j < kShare; ++j) words[j] = path_[j].word[w];
      path.word[w] = from_owner(words, node);
    }
    return path;
  }
  template <class T>
  TFGW_DEVICE static void set_if(bool mine, T& at, T value) {
    at = mine ? value : at;
  }
  TFGW_DEVICE void set_path(int node, const Mask& path) {
#pragma unroll
    for (int j = 0; j < kShare; ++j)
#pragma unroll
      for (int w = 0; w < kShare; ++w) set_if(node == lane() + 32 * j, path_[j].word[w], path.word[w]);
  }
  TFGW_DEVICE void set_arc(int slot, int row, int col, i64 flow) {
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      const bool mine = slot == lane() + 32 * j;
      set_if(mine, row_[j], row), set_if(mine, col_[j], col), set_if(mine, flow_[j], flow);
    }
  }
  TFGW_DEVICE void set_split(int node, int row, int degree) {
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      const bool mine = node == lane() + 32 * j;
      set_if(mine, split_row_[j], row), set_if(mine, degree_[j], degree);
    }
  }
  TFGW_DEVICE int change_degree(int node, int by) {
#pragma unroll
    for (int j = 0; j < kShare; ++j) degree_[j] += node == lane() + 32 * j ? by : 0;
    return from_owner(degree_, node);
  }
  TFGW_DEVICE int take_slot() {
    const int slot = used_.lowest_free();
    used_.flip(slot);
    return slot;
  }

  // Length of the path of a node, which may differ between lanes.
  TFGW_DEVICE int depth_of_each(int node) const {
    int depth = 0;
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      const int theirs = shfl(path_[j].count(), node & 31);
      if (node >> 5 == j) depth = theirs;
    }
    return depth;
  }

  // A leaf row becomes a core node below its home, whose path becomes the row's. Returns the node.
  TFGW_DEVICE int join_core(int row, int home, Mask& path) {
    const int node = P + split_, slot = take_slot();
    const double potential = -row_potential(row);
    path.flip(slot);
    row_is_child_.flip(slot);
    set_path(node, path);
    set_split(node, row, 1);
    set_arc(slot, row, home, supply_[row]);
    ++split_;
    sync_warp();
    if (lane() == 0) t_->potential[node] = potential, anchor_[row] = node, base_[row] = 0;
    sync_warp();
    return node;
  }

  // A core row that has only one arc left becomes a leaf; the last core row takes its place.
  TFGW_DEVICE void leave_core(int row, int node) {
    const int slot = last_arc(row), home = from_owner(col_, slot);
    const int last = P + split_ - 1, last_row = from_owner(split_row_, last), last_degree = from_owner(degree_, last);
    const Mask last_path = path_of(last);
    used_.flip(slot);
    row_is_child_.flip(slot);
    set_path(node, last_path), set_split(node, last_row, last_degree);
    set_path(last, {});
    --split_;
    if (lane() == 0) {
      t_->potential[node] = t_->potential[last];
      anchor_[last_row] = node;
      anchor_[row] = home, base_[row] = cost_[i64(row) * P + home];
    }
    sync_warp();
  }

  TFGW_DEVICE int last_arc(int row) const {
    int found = -1;
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      const u32 all = ballot(used_.has_mine(j) && row_[j] == row);
      if (all) found = lowest_bit(all) + 32 * j;
    }
    return found;
  }

  // Every node below the arc `slot` gets mask ^= change and potential += shift.
  TFGW_DEVICE void move_subtree(int slot, const Mask& change, double shift) {
    sync_warp();
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      const bool below = path_[j].has(slot);
#pragma unroll
      for (int w = 0; w < kShare; ++w) path_[j].word[w] ^= below ? change.word[w] : 0;
      if (below) t_->potential[lane() + 32 * j] += shift;
    }
  }

  Memory* const t_;
  const int rows_, root_;
  const i64* const supply_;
  int* const anchor_;
  double* const base_;
  int split_ = 0;
  const double* cost_ = nullptr;
  Mask used_{}, row_is_child_{};                // by slot; the same on every lane
  Mask path_[kShare]{};                         // of this lane's nodes
  int split_row_[kShare]{}, degree_[kShare]{};  // of those that are split rows
  int row_[kShare]{}, col_[kShare]{};           // of this lane's arcs
  i64 flow_[kShare]{};
};

}  // namespace tfgw

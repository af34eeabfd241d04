// The basis of core_tree.cuh for templates of more than 128 nodes, which is too large for registers: columns and split
// rows, their arcs and paths are in memory. Lane w works on word w of a mask over slots, and on the arcs of its slots.
#pragma once

#include "core_tree.cuh"

namespace tfgw {

template <int P>
class WideTree {
  static constexpr int kNodes = 2 * P;            // columns first, then split rows
  static constexpr int kWords = kNodes / 32;      // of a mask
  static constexpr int kMaskPitch = kWords + 1;   // the same word of different masks is in different banks
  static constexpr int kColumnsPerLane = Shape<P>::kColumnsPerLane;
  static_assert(kWords <= 32, "a lane has one word of a mask");

 public:
  using Team = tfgw::Team<1>;
  static constexpr int kColumns = P;
  struct Memory {
    double potential[kNodes];           // v of a column, −u of a split row
    i64 flow[kNodes];                   // by slot
    int row[kNodes], col[kNodes];       // by slot; a free slot has row −1
    int depth[kNodes];                  // of a node; only valid in `root` and `compute_potentials`
    int split_row[P], degree[P];        // by split row
    u32 path[kNodes * kMaskPitch];      // of a node: slots on its way to the root
  };
  using View = CoreView<Memory>;

  // For `rows` rows, `cols` of the columns in use. The arrays have one entry per row.
  TFGW_DEVICE WideTree(Memory* memory, int rows, int cols, const i64* supply, const RowArrays& at)
      : t_(memory), rows_(rows), root_(cols - 1), supply_(supply), anchor_(at.anchor), base_(at.base) {}

  // The first basis, of `count` arcs. A row's only arc makes it a leaf, several make it a core row.
  TFGW_DEVICE void begin(const Arc* arcs, int count) {
    int slots = 0;
    split_ = 0, row_is_child_ = 0;
#pragma unroll 1
    for (int e = lane(); e < kNodes; e += 32) t_->potential[e] = 0, t_->row[e] = t_->depth[e] = -1;
#pragma unroll 1
    for (int e = lane(); e < kNodes * kMaskPitch; e += 32) t_->path[e] = 0;
    sync_warp();
#pragma unroll 1
    for (int start = 0; start < count; start += 32) {
      const int a = start + lane();
      const bool there = a < count;
      const Arc arc = arcs[there ? a : count - 1];
      const bool first = a == 0 || (there && arcs[a - 1].row != arc.row);
      const bool last = a + 1 >= count || arcs[a + 1].row != arc.row;
      const bool core = there && !(first && last);
      const u32 before = (u32(1) << lane()) - 1, cores = ballot(core), firsts = ballot(core && first);
      const int slot = slots + popc(cores & before);
      const int split = split_ + popc(firsts & before) + first - 1;
      if (there && !core) anchor_[arc.row] = arc.col;
      if (core) t_->row[slot] = arc.row, t_->col[slot] = arc.col, t_->flow[slot] = arc.flow;
      if (core && first) anchor_[arc.row] = P + split, t_->split_row[split] = arc.row, t_->degree[split] = 0;
      sync_warp();
      if (core) atomic_add(&t_->degree[split], 1);
      slots += popc(cores), split_ += popc(firsts);
    }
    const int full = slots / 32;
    used_ = lane() < full ? ~u32(0) : lane() == full ? (u32(1) << slots % 32) - 1 : 0;
    root();
  }

  // Potentials for new costs. Returns the largest cost on the tree, in absolute value.
  TFGW_DEVICE double compute_potentials(const double* cost) {
    cost_ = cost;
    double largest = 0;
    u32 deepest = 0;
#pragma unroll 1
    for (int node = lane(); node < kNodes; node += 32) {
      int depth = 0;
#pragma unroll 4
      for (int w = 0; w < kWords; ++w) depth += popc(t_->path[node * kMaskPitch + w]);
      t_->depth[node] = depth;
      deepest = u32(depth) > deepest ? u32(depth) : deepest;
    }
    deepest = warp_max(deepest);
#pragma unroll 1
    for (int i = lane(); i < rows_; i += 32) {
      const int home = anchor_[i];
      const double c = home < P ? cost[i64(i) * P + home] : 0.0;
      base_[i] = c;
      largest = larger(largest, magnitude(c));
    }
    if (lane() == 0) t_->potential[root_] = 0;
    sync_warp();
#pragma unroll 1
    for (int d = 1; d <= int(deepest); ++d) {
      each_slot([&](int s, bool down_to_row) {
        if (t_->row[s] < 0) return;
        const int node = anchor_[t_->row[s]], child = down_to_row ? node : t_->col[s];
        if (t_->depth[child] != d) return;
        const double c = cost[i64(t_->row[s]) * P + t_->col[s]];
        largest = larger(largest, magnitude(c));
        t_->potential[child] = down_to_row ? t_->potential[t_->col[s]] - c : t_->potential[node] + c;
      });
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
    each_slot([&](int s, bool down_to_row) {
      if (t_->row[s] >= 0) visit(t_->row[s], t_->col[s], t_->flow[s], down_to_row);
    });
  }
  // The same with visit(flow, load(row, col)), after meanwhile().
  template <class Load, class Meanwhile, class Visit>
  TFGW_DEVICE void for_each_arc(Load load, Meanwhile meanwhile, Visit visit) const {
    meanwhile();
    for_each_arc([&](int row, int col, i64 flow, bool) { visit(flow, load(row, col)); });
  }

 private:
  // Masks over slots: each lane has one word.
  TFGW_DEVICE u32 path_of(int node) const { return lane() < kWords ? t_->path[node * kMaskPitch + lane()] : 0; }
  TFGW_DEVICE void set_path(int node, u32 path) {
    if (lane() < kWords) t_->path[node * kMaskPitch + lane()] = path;
  }
  TFGW_DEVICE static u32 bit_of(int slot) { return lane() == slot >> 5 ? u32(1) << (slot & 31) : 0; }
  TFGW_DEVICE static bool has(u32 mask, int slot) { return ballot(mask & bit_of(slot)) != 0; }
  TFGW_DEVICE static int count(u32 mask) {
    int bits = popc(mask);
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) bits += shfl_xor(bits, distance);
    return bits;
  }
  // visit(slot) for each slot of this lane's word.
  template <class Visit>
  TFGW_DEVICE static void each_mine(u32 mask, Visit visit) {
    for (; mask; mask &= mask - 1) visit(32 * lane() + lowest_bit(mask));
  }
  // visit(slot) for each slot of the mask, by all lanes together.
  template <class Visit>
  TFGW_DEVICE static void each_of_all(u32 mask, Visit visit) {
    for (u32 owners = ballot(mask != 0); owners; owners &= owners - 1) {
      const int owner = lowest_bit(owners);
      for (u32 word = shfl(mask, owner); word; word &= word - 1) visit(32 * owner + lowest_bit(word));
    }
  }

  // visit(slot, whether its row is below its column) for every slot, 32 at a time.
  template <class Visit>
  TFGW_DEVICE void each_slot(Visit visit) const {
#pragma unroll 1
    for (int w = 0; w < kWords; ++w) {
      const u32 down_to_row = shfl(row_is_child_, w);
      visit(32 * w + lane(), bool(down_to_row >> lane() & 1));
    }
  }

  // Hangs all core nodes under the last column, level by level.
  TFGW_DEVICE void root() {
    if (lane() == 0) t_->depth[root_] = 0;
    sync_warp();
#pragma unroll 1
    for (int level = 0; true; ++level) {
      bool any = false;
#pragma unroll 1
      for (int w = 0; w < kWords; ++w) {
        const int s = 32 * w + lane(), row = t_->row[s], col = row < 0 ? 0 : t_->col[s];
        const int node = row < 0 ? 0 : anchor_[row];
        const bool to_row = row >= 0 && t_->depth[col] == level && t_->depth[node] < 0;
        const bool to_col = row >= 0 && t_->depth[node] == level && t_->depth[col] < 0;
        const u32 rows = ballot(to_row);
        if (lane() == w) row_is_child_ |= rows;
        any |= to_row || to_col;
        const int child = to_row ? node : col, parent = to_row ? col : node;
        sync_warp();  // all lanes have read the depths
#pragma unroll 1
        for (int v = 0; v < kWords && (to_row || to_col); ++v)
          t_->path[child * kMaskPitch + v] = t_->path[parent * kMaskPitch + v] | (v == w ? u32(1) << lane() : 0);
        if (to_row || to_col) t_->depth[child] = level + 1;
        sync_warp();
      }
      if (!ballot(any)) return;
    }
  }

  TFGW_DEVICE double row_potential(int row) const { return base_[row] - t_->potential[anchor_[row]]; }

  // Brings arc (row, col), of the given reduced cost, into the basis. Returns whether that moves flow.
  TFGW_DEVICE bool pivot(int row, int col, double reduced) {
    int node = anchor_[row];
    const bool leaf = node < P;
    const i64 own = leaf ? supply_[row] : 0;  // a leaf's only arc carries the row's whole supply
    u32 from_row = path_of(node);
    const u32 from_col = path_of(col);
    bool row_side;
    i64 pushed;
    const int leaving = blocking_slot(from_row, from_col, row_side, pushed);
    if (leaf && (leaving < 0 || own < pushed || (own == pushed && row_side))) {  // the row only changes its home
      push(from_row, from_col, own);
      sync_warp();  // all lanes have read the old home
      if (lane() == 0) anchor_[row] = col, base_[row] = cost_[i64(row) * P + col];
      sync_warp();
      return own > 0;
    }
    if (leaf) node = join_core(row, node, from_row);
    push(from_row, from_col, pushed);
    const int loser = t_->row[leaving], loser_node = anchor_[loser];
    const u32 top = path_of(has(row_is_child_, leaving) ? loser_node : t_->col[leaving]);
    // Arcs between the entering arc's end and the cut change direction.
    row_is_child_ ^= (row_side ? from_row : from_col) ^ top;
    move_subtree(leaving, from_row ^ from_col ^ bit_of(leaving), row_side ? -reduced : reduced);
    row_is_child_ = (row_is_child_ & ~bit_of(leaving)) | (row_side ? bit_of(leaving) : 0);
    const int degree = loser == row ? 0 : t_->degree[loser_node - P] - 1;
    sync_warp();  // all lanes have read the arc that leaves
    set_arc(leaving, row, col, pushed);
    if (loser != row && lane() == 0) ++t_->degree[node - P], t_->degree[loser_node - P] = degree;
    sync_warp();
    if (degree == 1) leave_core(loser, loser_node);
    return pushed > 0;
  }

  // The losing arc of the cycle with the least flow, or −1, as in core_tree.cuh.
  TFGW_DEVICE int blocking_slot(u32 from_row, u32 from_col, bool& row_side, i64& flow) const {
    const u32 losing = (from_row ^ from_col) & ~(from_row ^ row_is_child_);
    u64 least = ~u64(0);
    u32 mine = 0;
    each_mine(losing, [&](int s) {
      const u64 here = u64(t_->flow[s]);
      if (here < least) least = here, mine = 0;
      if (here == least) mine |= bit_of(s);
    });
    const u64 lowest = warp_min(least);
    flow = i64(lowest);
    if (lowest == ~u64(0)) return -1;
    if (least != lowest) mine = 0;
    const u32 holders = ballot(mine != 0);
    const bool several = ballot(mine & (mine - 1)) || (holders & (holders - 1));
    int slot = -1, first = 2 * kNodes;
    each_of_all(mine, [&](int s) {
      int rank = 0;
      if (several) {
        const int below = count(path_of(has(row_is_child_, s) ? anchor_[t_->row[s]] : t_->col[s]));
        rank = has(from_row, s) ? kNodes - below : below;
      }
      if (rank < first) first = rank, slot = s;
    });
    row_side = has(from_row, slot);
    return slot;
  }

  // Sends flow along the cycle.
  TFGW_DEVICE void push(u32 from_row, u32 from_col, i64 flow) {
    const u32 gaining = from_row ^ row_is_child_;
    each_mine(from_row ^ from_col, [&](int s) { t_->flow[s] += gaining & bit_of(s) ? flow : -flow; });
  }

  TFGW_DEVICE void set_arc(int slot, int row, int col, i64 flow) {
    if (lane() == slot >> 5) t_->row[slot] = row, t_->col[slot] = col, t_->flow[slot] = flow;
  }
  TFGW_DEVICE int take_slot() {
    const u32 free = lane() < kWords ? ~used_ : 0;
    const int owner = lowest_bit(ballot(free != 0)), slot = 32 * owner + lowest_bit(shfl(free, owner));
    used_ |= bit_of(slot);
    return slot;
  }

  // A leaf row becomes a core node below its home, whose path becomes the row's. Returns the node.
  TFGW_DEVICE int join_core(int row, int home, u32& path) {
    const int node = P + split_, slot = take_slot();
    const double potential = -row_potential(row);
    path |= bit_of(slot);
    row_is_child_ |= bit_of(slot);
    ++split_;
    sync_warp();  // all lanes have read the old home
    set_path(node, path);
    set_arc(slot, row, home, supply_[row]);
    if (lane() == 0) {
      t_->split_row[node - P] = row, t_->degree[node - P] = 1;
      t_->potential[node] = potential, anchor_[row] = node, base_[row] = 0;
    }
    sync_warp();
    return node;
  }

  // A core row that has only one arc left becomes a leaf; the last core row takes its place.
  TFGW_DEVICE void leave_core(int row, int node) {
    const int slot = only_arc(row), home = t_->col[slot];
    const int last = P + split_ - 1, last_row = t_->split_row[last - P], last_degree = t_->degree[last - P];
    const u32 last_path = path_of(last);
    used_ &= ~bit_of(slot);
    row_is_child_ &= ~bit_of(slot);
    --split_;
    sync_warp();
    set_path(node, last_path);
    set_path(last, 0);
    if (lane() == 0) {
      t_->row[slot] = -1;
      t_->split_row[node - P] = last_row, t_->degree[node - P] = last_degree;
      t_->potential[node] = t_->potential[last];
      anchor_[last_row] = node;
      anchor_[row] = home, base_[row] = cost_[i64(row) * P + home];
    }
    sync_warp();
  }

  TFGW_DEVICE int only_arc(int row) const {
    int found = -1;
#pragma unroll 1
    for (int w = 0; w < kWords && found < 0; ++w) {
      const u32 all = ballot(t_->row[32 * w + lane()] == row);
      if (all) found = lowest_bit(all) + 32 * w;
    }
    return found;
  }

  // Every node below the arc `slot` gets mask ^= change and potential += shift.
  TFGW_DEVICE void move_subtree(int slot, u32 change, double shift) {
    const auto move = [&](int first, int end) {
#pragma unroll 1
      for (int start = first; start < end; start += 32) {
        const int node = start + lane();
        const bool below = t_->path[node * kMaskPitch + (slot >> 5)] >> (slot & 31) & 1;
        if (below) t_->potential[node] += shift;
        const u32 moves = ballot(below);
        sync_warp();  // all lanes have read their word
        for (u32 left = moves; left; left &= left - 1) {
          const int moved = start + lowest_bit(left);
          set_path(moved, path_of(moved) ^ change);
        }
      }
    };
    sync_warp();
    move(0, root_);  // the root itself is below no arc
    move(P, P + split_);
    sync_warp();
  }

  Memory* const t_;
  const int rows_, root_;
  const i64* const supply_;
  int* const anchor_;
  double* const base_;
  int split_ = 0;
  const double* cost_ = nullptr;
  u32 used_ = 0, row_is_child_ = 0;  // this lane's words
};

// The basis of pairs in global memory.
template <int P, bool kWide = (P > 128)>
struct GlobalTree {
  using Tree = CoreTree<P>;
};
template <int P>
struct GlobalTree<P, true> {
  using Tree = WideTree<P>;
};

}  // namespace tfgw

// A basis of the transportation problem for graphs small enough that every arc has a lane's registers to live in. No row
// is treated as a leaf (core_tree.cuh), so nothing ever moves in or out of a core, and a pivot touches no memory.
// Columns are nodes 0 … cols − 1, rows come behind them. Slot 32 j + l belongs to lane l, which holds the arc and what
// there is to know of the node below it: its path to the root, as a mask over slots, and the potential of its column.
// Other lanes read what belongs to nodes from shared memory, as it was when it was last published.
#pragma once

#include "beginning.cuh"
#include "bits.cuh"

namespace tfgw {

template <int P, int W>  // up to 32 W arcs
class FlatTree {
  static_assert(P <= 32, "a lane has one column");
  using Mask = Bits<W>;

 public:
  static constexpr int kColumns = P;
  static constexpr int kNodes = 32 * W + 1;
  struct Memory {
    Mask path[kNodes];
    double potential[kNodes];  // v of a column, −u of a row
    int parent[kNodes];
  };

  // Potentials as they were published.
  class View {
   public:
    TFGW_DEVICE View(const Memory* memory, int cols, const RowArrays&) : t_(memory), cols_(cols) {}
    TFGW_DEVICE void hold_rows(int, int) const {}
    TFGW_DEVICE double row(int i) const { return -t_->potential[cols_ + i]; }
    TFGW_DEVICE double held_row(int i) const { return row(i); }
    TFGW_DEVICE double col(int k) const { return t_->potential[k]; }

   private:
    const Memory* const t_;
    const int cols_;
  };

  TFGW_DEVICE FlatTree(Memory* memory, int, int cols, const i64*, const RowArrays&) : t_(memory), cols_(cols) {}

  // The first basis, of so many arcs.
  TFGW_DEVICE void begin(const Arc* arcs, int count) {
    arcs_ = count;
    row_is_child_ = {};
#pragma unroll
    for (int j = 0; j < W; ++j) {
      const int slot = lane() + 32 * j;
      const Arc arc = slot < count ? arcs[slot] : Arc{};
      ends_[j] = pack(arc.row, arc.col), flow_[j] = arc.flow;
      above_[j] = {}, of_column_[j] = 0, cost_[j] = 0;
    }
#pragma unroll 1
    for (int node = lane(); node < kNodes; node += 32)
      t_->path[node] = {}, t_->potential[node] = 0, t_->parent[node] = cols_ - 1;
    sync();
    root();
  }

  // Potentials for new costs, every node's the sum of the steps above it: each round adds what the node twice as far up
  // has gathered. Returns the largest cost on the tree, in absolute value.
  TFGW_DEVICE double compute_potentials(const double* cost) {
    double largest = 0;
    int child[W], parent[W];
    double potential[W];
#pragma unroll
    for (int j = 0; j < W; ++j) {
      const bool used = lane() + 32 * j < arcs_, down_to_row = row_is_child_.has_mine(j);
      const int row = row_of(ends_[j]), col = col_of(ends_[j]);
      cost_[j] = used ? cost[row * P + col] : 0.0;
      largest = larger(largest, magnitude(cost_[j]));
      child[j] = !used ? cols_ - 1 : down_to_row ? cols_ + row : col;
      if (!used) continue;
      t_->parent[child[j]] = down_to_row ? col : cols_ + row;
      t_->potential[child[j]] = down_to_row ? -cost_[j] : cost_[j];
    }
    largest = warp_max(largest);
    sync();
    while (true) {
      bool more = false;
#pragma unroll
      for (int j = 0; j < W; ++j) {
        const int up = t_->parent[child[j]];
        potential[j] = t_->potential[child[j]] + t_->potential[up];
        parent[j] = t_->parent[up];
        more = more || parent[j] != cols_ - 1;
      }
      sync();
#pragma unroll
      for (int j = 0; j < W; ++j)
        if (child[j] != cols_ - 1) t_->potential[child[j]] = potential[j], t_->parent[child[j]] = parent[j];
      sync();
      if (!ballot(more)) break;
    }
#pragma unroll
    for (int j = 0; j < W; ++j) of_column_[j] = row_is_child_.has_mine(j) ? potential[j] + cost_[j] : potential[j];
    return largest;
  }

  // Lets other lanes, and other warps once they have met, see paths and potentials. The root's are always 0.
  TFGW_DEVICE void publish() const {
    sync();
#pragma unroll
    for (int j = 0; j < W; ++j) {
      if (lane() + 32 * j >= arcs_) continue;
      const bool is_row = row_is_child_.has_mine(j);
      const int child = is_row ? cols_ + row_of(ends_[j]) : col_of(ends_[j]);
      t_->path[child] = above_[j], t_->potential[child] = is_row ? of_column_[j] - cost_[j] : of_column_[j];
    }
  }

  // Pivots on each column's candidate, most negative first, while they stay improving. The potentials must have been
  // published. `eps` rises in proportion to the costs that enter. False if none was improving; `moved` gets true if flow
  // was.
  TFGW_DEVICE bool pivot_on(const Candidates<1>& found, double unit, double& eps, bool& moved) {
    const bool any = found.row[0] >= 0;
    const int row = any ? found.row[0] : 0, column = any ? lane() : 0;
    Mask from_row{}, from_col{};  // without a candidate, nothing ever changes
    double v = 0, reduced = 0;
    if (any) {
      from_row = t_->path[cols_ + row], from_col = t_->path[column];
      v = t_->potential[column], reduced = found.lowest[0] - v;
    }
    const double cost = found.cost[0];
    const u32 ends = pack(row, column);
    bool improved = false;
    while (true) {
      // Negative numbers: the larger their bits, the lower they are. The upper half decides nearly always.
      const u64 key = reduced < -eps ? ~bits_of(reduced) : ~u64(0);
      const u32 lowest = warp_min(u32(key >> 32));
      if (lowest == ~u32(0)) return improved;
      const u32 holders = ballot(u32(key >> 32) == lowest);
      const int owner = holders & (holders - 1) ? lane_of_least(key, u32(lane())) : lowest_bit(holders);
      improved = true;
      Entering in;
#pragma unroll
      for (int w = 0; w < W; ++w) {
        in.from_row.word[w] = from_lane(from_row.word[w], owner);
        in.from_col.word[w] = from_lane(from_col.word[w], owner);
      }
      in.ends = from_lane(ends, owner), in.v = from_lane(v, owner);
      in.reduced = from_lane(reduced, owner), in.cost = from_lane(cost, owner);
      const Cut cut = enter(in);
      moved = moved || cut.moved;
      eps = larger(eps, unit * magnitude(in.cost));
      const bool row_below = common(from_row, cut.leaving), col_below = common(from_col, cut.leaving);
      if (row_below) from_row.flip(cut.change);
      if (col_below) from_col.flip(cut.change), v += cut.shift;
      if (row_below != col_below) reduced += row_below ? cut.shift : -cut.shift;
    }
  }

  // Calls visit(row, col, flow, whether the row is below the column) for every arc, all lanes their own.
  template <class Visit>
  TFGW_DEVICE void for_each_arc(Visit visit) const {
#pragma unroll
    for (int j = 0; j < W; ++j)
      if (lane() + 32 * j < arcs_) visit(row_of(ends_[j]), col_of(ends_[j]), flow_[j], row_is_child_.has_mine(j));
  }

 private:
  struct Entering {
    Mask from_row, from_col;
    u32 ends;
    double v, reduced, cost;
  };
  struct Cut {
    Mask leaving, change;  // every node below `leaving` has its path changed by `change`, its potential by `shift`
    double shift;
    bool moved;
  };

  // Hangs all nodes under the last column, level by level.
  TFGW_DEVICE void root() {
    const int root = cols_ - 1;
    while (true) {
      bool any = false;
      int child[W];
#pragma unroll
      for (int j = 0; j < W; ++j) {
        const int row = cols_ + row_of(ends_[j]), col = col_of(ends_[j]);
        const Mask of_row = t_->path[row], of_col = t_->path[col];
        const bool row_reached = of_row.any(), col_reached = col == root || of_col.any();
        const bool reaches = lane() + 32 * j < arcs_ && row_reached != col_reached;
        row_is_child_.word[j] |= ballot(reaches && col_reached);
        child[j] = !reaches ? -1 : col_reached ? row : col;
        if (reaches) {
          above_[j] = col_reached ? of_col : of_row;
          above_[j].word[j] |= u32(1) << lane();
        }
        any = any || reaches;
      }
      sync();
#pragma unroll
      for (int j = 0; j < W; ++j)
        if (child[j] >= 0) t_->path[child[j]] = above_[j];
      sync();
      if (!ballot(any)) return;
    }
  }

  // An arc's two nodes in one word.
  TFGW_DEVICE static u32 pack(int row, int col) { return u32(row) << 8 | u32(col); }
  TFGW_DEVICE static int row_of(u32 ends) { return int(ends >> 8); }
  TFGW_DEVICE static int col_of(u32 ends) { return int(ends & 0xff); }

  TFGW_DEVICE static bool common(const Mask& a, const Mask& b) {
    u32 both = 0;
#pragma unroll
    for (int w = 0; w < W; ++w) both |= a.word[w] & b.word[w];
    return both != 0;
  }

  // One pivot. The entering arc closes a cycle: the arcs on the way to the root from its row or from its column, but not
  // from both. On the row's side arcs lose flow that lead up from a row, on the column's side those that lead down to
  // one.
  TFGW_DEVICE Cut enter(const Entering& in) {
    const u32 bit = u32(1) << lane();
    u64 least = ~u64(0);
    u32 tag = 0;
    Mask top{};  // path of the node below the arc that may leave
    bool tied = false;
#pragma unroll
    for (int j = 0; j < W; ++j) {
      const u32 row = in.from_row.word[j], cycle = row ^ in.from_col.word[j];
      const bool losing = cycle & ~(row ^ row_is_child_.word[j]) & bit;
      const u64 flow = losing ? u64(flow_[j]) : ~u64(0);
      tied = losing && flow == least ? true : tied && flow >= least;
      if (flow < least) {
        least = flow, top = above_[j];
        tag = u32(32 * j + lane()) | (row & bit ? kRowSide : 0u);
      }
    }
    const u32 high = warp_min(u32(least >> 32));
    const bool candidate = u32(least >> 32) == high;
    const u32 holders = ballot(candidate);
    int owner = lowest_bit(holders);
    if ((holders & (holders - 1)) || ballot(candidate && tied)) owner = break_tie(in, owner, least, tag, top);

    tag = from_lane(tag, owner);
    const i64 pushed = i64(u64(high) << 32 | from_lane(u32(least), owner));
    const bool row_side = tag & kRowSide;
    const int slot = int(tag & ~kRowSide);
    Cut cut;
    cut.shift = row_side ? -in.reduced : in.reduced;
    cut.moved = pushed > 0;
    Mask turned;  // arcs between the entering arc's end and the cut
    Mask rooted;  // new path of that end
#pragma unroll
    for (int w = 0; w < W; ++w) {
      const u32 leaving = slot >> 5 == w ? u32(1) << (slot & 31) : 0u;
      const u32 row = in.from_row.word[w], cycle = row ^ in.from_col.word[w];
      const u32 side = row_side ? row : in.from_col.word[w];
      const u32 gaining = cycle & (row ^ row_is_child_.word[w]);
      cut.leaving.word[w] = leaving;
      cut.change.word[w] = cycle ^ leaving;
      turned.word[w] = side ^ from_lane(top.word[w], owner);
      rooted.word[w] = side ^ cut.change.word[w];
      flow_[w] += !(cycle & bit) ? 0 : gaining & bit ? pushed : -pushed;
      row_is_child_.word[w] ^= turned.word[w];
      row_is_child_.word[w] = row_side ? row_is_child_.word[w] | leaving : row_is_child_.word[w] & ~leaving;
    }
#pragma unroll
    for (int j = 0; j < W; ++j) {
      const bool below = common(above_[j], cut.leaving);
      if (turned.word[j] & bit) above_[j].word[j] ^= bit;  // the node above is below now
      if (below) above_[j].flip(cut.change), of_column_[j] += cut.shift;
      if (slot == lane() + 32 * j) {  // the entering arc takes the leaving one's slot
        above_[j] = rooted;
        flow_[j] = pushed, ends_[j] = in.ends;
        cost_[j] = in.cost, of_column_[j] = row_side ? in.v : in.v + cut.shift;
      }
    }
    return cut;
  }

  // Several arcs may lose as much, or nearly. Among those with the least flow it is the last one met when the cycle is
  // walked from its apex in the direction of the flow: down to the row, over the new arc, up from the column
  // (Cunningham's rule). Lane `some` has an arc that may be among them. Returns the lane of the right one, which then
  // has its flow, tag and path.
  TFGW_DEVICE int break_tie(const Entering& in, int some, u64& least, u32& tag, Mask& top) const {
    // Mostly all of them lose exactly as much.
    u64 lowest = from_lane(least, some);
    if (ballot(least != lowest && u32(least >> 32) == u32(lowest >> 32))) lowest = warp_min(least);
    const u32 bit = u32(1) << lane();
    u32 first = ~u32(0);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      const u32 row = in.from_row.word[j], cycle = row ^ in.from_col.word[j];
      const bool losing = cycle & ~(row ^ row_is_child_.word[j]) & bit;
      const int depth = above_[j].count();
      const u32 rank = u32(row & bit ? 64 * W - depth : depth) << 16 | u32(lane() + 32 * j);
      if (losing && u64(flow_[j]) == lowest && rank < first) {
        first = rank, top = above_[j];
        tag = u32(32 * j + lane()) | (row & bit ? kRowSide : 0u);
      }
    }
    least = lowest;
    return int(warp_min(first) & 31);
  }

  static constexpr u32 kRowSide = 1 << 16;

  Memory* const t_;
  const int cols_;
  int arcs_ = 0;
  Mask row_is_child_{};    // by slot; the same on every lane
  Mask above_[W]{};        // of the node below each of this lane's arcs: path
  double of_column_[W]{};  // potential of each arc's column, from which that of its row differs by the cost
  double cost_[W]{};
  u32 ends_[W]{};
  i64 flow_[W]{};
};

}  // namespace tfgw

// A basis of the transportation problem for graphs small enough to keep every arc in a lane's registers. No row is
// treated as a leaf (core_tree.cuh), so nothing ever moves in or out of a core, and a pivot touches little memory.
// Columns are nodes 0 … cols − 1, rows follow. Slot 32 w + l belongs to lane l, which holds the arc and the state of
// its lower node: its path to the root, as a mask over slots, and the potential of its column. If several warps share
// the basis, each holds one or two words of the masks. The state of nodes is read from shared memory, as last
// published.
#pragma once

#include "initial_state.cuh"
#include "bits.cuh"
#include "team.cuh"

namespace tfgw {

template <int P, int W, class Warps>  // up to 32 W arcs
class FlatTree {
  static_assert(P <= 32, "a lane has one column");
  static constexpr int kShare = (W + Warps::kSize - 1) / Warps::kSize;  // arcs per lane
  using Mask = Bits<W>;

 public:
  using Team = Warps;
  static constexpr int kColumns = P;
  static constexpr int kNodes = 32 * W + 1;
  // The arcs of a pivot, broadcast by the lanes that hold them.
  struct alignas(16) Entering {
    Mask from_row, from_col;
    u32 ends;
    double v, reduced, cost;
  };
  struct alignas(16) Leaving {
    u64 flow;
    u32 tag;   // slot and side
    u32 rank;  // among equal flows the lowest rank leaves
  };
  struct alignas(16) Keys {
    u32 of[4];
  };
  struct Memory {
    Entering entering[Team::kSize];
    Leaving leaving[2][Team::kSize];
    Keys keys[2];  // by warp, of its entry in `leaving`
    double largest[Team::kSize];
    Mask path[kNodes];
    double potential[kNodes];  // v of a column, −u of a row
    int parent[kNodes];
  };

  // Potentials as last published.
  class View {
   public:
    TFGW_DEVICE View(const Memory* memory, int cols, const RowArrays&) : t_(memory), cols_(cols) {}
    TFGW_DEVICE void cache_rows(int, int) const {}
    TFGW_DEVICE double row(int i) const { return -t_->potential[cols_ + i]; }
    TFGW_DEVICE double cached_row(int i) const { return row(i); }
    TFGW_DEVICE double col(int k) const { return t_->potential[k]; }

   private:
    const Memory* const t_;
    const int cols_;
  };

  TFGW_DEVICE FlatTree(Memory* memory, int, int cols, const i64*, const RowArrays&) : t_(memory), cols_(cols) {}

  // The first basis, of `count` arcs.
  TFGW_DEVICE void begin(const Arc* arcs, int count) {
    arcs_ = count;
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      const Arc arc = is_used(j) ? arcs[slot(j)] : Arc{};
      ends_[j] = pack(arc.row, arc.col), flow_[j] = arc.flow;
      above_[j] = {}, of_column_[j] = 0, cost_[j] = 0, row_is_child_[j] = 0;
    }
#pragma unroll 1
    for (int node = Team::thread(); node < kNodes; node += Team::kThreads)
      t_->path[node] = {}, t_->potential[node] = 0, t_->parent[node] = cols_ - 1;
    Team::sync();
    root();
  }

  // Potentials for new costs by pointer jumping: a node's potential is the sum of the steps above it, and each round
  // doubles the distance covered by the sums. Returns the largest cost on the tree, in absolute value.
  TFGW_DEVICE double compute_potentials(const double* cost) {
    double largest = 0;
    int child[kShare], parent[kShare];
    double potential[kShare];
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      const int row = row_of(ends_[j]), col = col_of(ends_[j]);
      cost_[j] = is_used(j) ? cost[row * P + col] : 0.0;
      largest = larger(largest, magnitude(cost_[j]));
      child[j] = !is_used(j) ? cols_ - 1 : row_is_child_[j] ? cols_ + row : col;
      if (!is_used(j)) continue;
      t_->parent[child[j]] = row_is_child_[j] ? col : cols_ + row;
      t_->potential[child[j]] = row_is_child_[j] ? -cost_[j] : cost_[j];
    }
    largest = warp_max(largest);
    if (!Team::kSingleWarp && lane() == 0) t_->largest[Team::warp()] = largest;
    Team::sync();
#pragma unroll
    for (int w = 0; w < Team::kSize && !Team::kSingleWarp; ++w) largest = larger(largest, t_->largest[w]);
    bool more = true;
#pragma unroll 1
    while (more) {
      more = false;
#pragma unroll
      for (int j = 0; j < kShare; ++j) {
        const int up = t_->parent[child[j]];
        potential[j] = t_->potential[child[j]] + t_->potential[up];
        parent[j] = t_->parent[up];
        more = more || parent[j] != cols_ - 1;
      }
      more = Team::any(more);
#pragma unroll
      for (int j = 0; j < kShare; ++j)
        if (is_used(j)) t_->potential[child[j]] = potential[j], t_->parent[child[j]] = parent[j];
      Team::sync();
    }
#pragma unroll
    for (int j = 0; j < kShare; ++j) of_column_[j] = row_is_child_[j] ? potential[j] + cost_[j] : potential[j];
    return largest;
  }

  // Writes paths and potentials to shared memory; visible after a barrier. Those of the root are always 0.
  TFGW_DEVICE void publish() const {
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      if (!is_used(j)) continue;
      const bool is_row = row_is_child_[j];
      const int child = is_row ? cols_ + row_of(ends_[j]) : col_of(ends_[j]);
      t_->path[child] = above_[j], t_->potential[child] = is_row ? of_column_[j] - cost_[j] : of_column_[j];
    }
  }

  // Pivots on each column's candidate, most negative first, while they remain improving. The potentials must have been
  // published. `eps` increases in proportion to the costs that enter. Returns false if none was improving. Sets `moved`
  // if flow moved.
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
      // Negative doubles: the larger the bits, the lower the number.
      const u64 key = reduced < -eps ? ~bits_of(reduced) : ~u64(0);
      const u32 mine = with_lane(key), lowest = warp_min(mine);
      if (lowest >= with_lane(~u64(0), 0)) return improved;
      improved = true;
      const auto enter_mine = [&] { entering() = {from_row, from_col, ends, v, reduced, cost}; };
      if (mine == lowest) enter_mine();
      const bool tied = same_but_lane(mine, lowest);
      const u32 all = ballot(tied);
      sync_warp();
      Entering in = entering();
      if (all & (all - 1)) {
        const int owner = lane_of_least_tied(key, tied, u32(lane()));
        sync_warp();
        if (lane() == owner) enter_mine();
        sync_warp();
        in = entering();
      }
      const Cut cut = enter(in);
      moved = moved || cut.moved;
      eps = larger(eps, unit * magnitude(in.cost));
      const bool row_below = common(from_row, cut.leaving), col_below = common(from_col, cut.leaving);
      if (row_below) from_row.flip(cut.change);
      if (col_below) from_col.flip(cut.change), v += cut.shift;
      if (row_below != col_below) reduced += row_below ? cut.shift : -cut.shift;
    }
  }

  // Calls visit(row, col, flow, whether the row is below the column) for every arc, each by one lane of the team.
  template <class Visit>
  TFGW_DEVICE void for_each_arc(Visit visit) const {
#pragma unroll
    for (int j = 0; j < kShare; ++j)
      if (is_used(j)) visit(row_of(ends_[j]), col_of(ends_[j]), flow_[j], row_is_child_[j] != 0);
  }
  // Calls visit(flow, load(row, col)) for every arc, and meanwhile() while the loads are in flight.
  template <class Load, class Meanwhile, class Visit>
  TFGW_DEVICE void for_each_arc(Load load, Meanwhile meanwhile, Visit visit) const {
    decltype(load(0, 0)) value[kShare];
#pragma unroll
    for (int j = 0; j < kShare; ++j) value[j] = load(row_of(ends_[j]), col_of(ends_[j]));
    meanwhile();
#pragma unroll
    for (int j = 0; j < kShare; ++j)
      if (is_used(j)) visit(flow_[j], value[j]);
  }

 private:
  struct Cut {
    Mask leaving, change;  // every node below `leaving` has its path changed by `change`, its potential by `shift`
    double shift;
    bool moved;
  };

  // Hangs all nodes under the last column, level by level.
  TFGW_DEVICE void root() {
    const int root = cols_ - 1;
    bool any = true;
#pragma unroll 1
    while (any) {
      any = false;
      int child[kShare];
#pragma unroll
      for (int j = 0; j < kShare; ++j) {
        const int row = cols_ + row_of(ends_[j]), col = col_of(ends_[j]);
        const Mask of_row = t_->path[row], of_col = t_->path[col];
        const bool row_reached = of_row.any(), col_reached = col == root || of_col.any();
        const bool reaches = is_used(j) && row_reached != col_reached;
        child[j] = !reaches ? -1 : col_reached ? row : col;
        if (reaches) {
          row_is_child_[j] = col_reached ? bit(j) : 0u;
          above_[j] = col_reached ? of_col : of_row;
          above_[j].flip(slot(j));
        }
        any = any || reaches;
      }
      any = Team::any(any);
#pragma unroll
      for (int j = 0; j < kShare; ++j)
        if (child[j] >= 0 && is_used(j)) t_->path[child[j]] = above_[j];
      Team::sync();
    }
  }

  // Of this lane's arc j.
  TFGW_DEVICE static int word(int j) { return Team::kSingleWarp ? j : j * Team::kSize + Team::warp(); }
  TFGW_DEVICE static int slot(int j) { return 32 * word(j) + lane(); }
  TFGW_DEVICE bool is_used(int j) const { return slot(j) < arcs_; }
  TFGW_DEVICE static u32 bit(int j) { return Team::kSingleWarp || word(j) < W ? u32(1) << lane() : 0u; }
  // The arc's word of a mask, which is also in memory.
  TFGW_DEVICE static u32 word_of(const Mask& mask, const Mask& in_memory, int j) {
    if constexpr (Team::kSingleWarp) return mask.word[j];
    else return in_memory.word[word(j) < W ? word(j) : 0];
  }
  TFGW_DEVICE Entering& entering() const { return t_->entering[Team::warp()]; }

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

  // One pivot. The entering arc closes a cycle: the arcs on the path to the root from its row or from its column, but
  // not from both. On the row's side, arcs that lead up from a row lose flow; on the column's side, those that lead
  // down to one.
  TFGW_DEVICE Cut enter(const Entering& in) {
    Sides at;
    u32 key = ~u32(0), keys[kShare];
    Leaving mine{~u64(0), 0, 0};
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      at.row[j] = word_of(in.from_row, entering().from_row, j);
      at.cycle[j] = at.row[j] ^ word_of(in.from_col, entering().from_col, j);
      keys[j] = is_losing(at, j) ? with_lane(u64(flow_[j])) : ~u32(0);
      if (keys[j] < key) key = keys[j], mine = {u64(flow_[j]), tag_of(j, at), 0};
    }
    const u32 lowest = warp_min(key);
    Leaving& of_warp = t_->leaving[turn_][Team::warp()];
    Keys& of_team = t_->keys[turn_];
    if (key == lowest) of_warp = mine;
    u32 holders = 0, several = 0;  // whether several arcs are tied, in one lane or in different lanes
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      const u32 tied = ballot(same_but_lane(keys[j], lowest));
      several |= holders & tied, holders |= tied;
    }
    several |= holders & (holders - 1);
    Leaving out;
    if constexpr (Team::kSingleWarp) {
      sync_warp();
      out = of_warp;
    } else {
      // The key's lowest bit tells whether several arcs of the warp are tied.
      if (lane() == 0) of_team.of[Team::warp()] = (lowest & ~u32(31)) | u32(2 * Team::warp()) | u32(several != 0);
      turn_ ^= 1;  // other warps may still be reading
      Team::sync();
      const Keys all = of_team;
      u32 first = all.of[0];
#pragma unroll
      for (int w = 1; w < Team::kSize; ++w) first = all.of[w] < first ? all.of[w] : first;
      out = t_->leaving[turn_ ^ 1][first >> 1 & 3];
      several = first & 1;
#pragma unroll
      for (int w = 0; w < Team::kSize; ++w) several |= u32(all.of[w] != first && same_but_lane(all.of[w], first));
    }
    if (several) out = last_of_cycle(at);

    const i64 pushed = i64(out.flow);
    const bool row_side = out.tag & kRowSide;
    const int leaving_slot = int(out.tag & ~kRowSide);
    Cut cut;
    cut.shift = row_side ? -in.reduced : in.reduced;
    cut.moved = pushed > 0;
    Mask rooted;  // new path of the end below the cut
#pragma unroll
    for (int w = 0; w < W; ++w) {
      const u32 leaving = leaving_slot >> 5 == w ? u32(1) << (leaving_slot & 31) : 0u;
      cut.leaving.word[w] = leaving;
      cut.change.word[w] = in.from_row.word[w] ^ in.from_col.word[w] ^ leaving;
      rooted.word[w] = (row_side ? in.from_row.word[w] : in.from_col.word[w]) ^ cut.change.word[w];
    }
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      const bool on_cycle = at.cycle[j] & bit(j), gaining = (at.row[j] ^ row_is_child_[j]) & bit(j);
      flow_[j] += !on_cycle ? 0 : gaining ? pushed : -pushed;
      const u32 below = common(above_[j], cut.leaving) ? ~u32(0) : 0u;
      // Between the entering arc and the cut, parent and child change places.
      const u32 turned = below & (row_side ? at.row[j] : at.row[j] ^ at.cycle[j]) & bit(j);
      row_is_child_[j] ^= turned;
#pragma unroll
      for (int w = 0; w < W; ++w) above_[j].word[w] ^= (cut.change.word[w] & below) ^ (w == word(j) ? turned : 0u);
      of_column_[j] += below ? cut.shift : 0.0;
      if (leaving_slot == slot(j)) {  // the entering arc takes the leaving one's slot
        above_[j] = rooted, row_is_child_[j] = row_side ? bit(j) : 0u;
        flow_[j] = pushed, ends_[j] = in.ends;
        cost_[j] = in.cost, of_column_[j] = row_side ? in.v : in.v + cut.shift;
      }
    }
    return cut;
  }

  // This lane's words of two masks: the path from the entering arc's row to the root, and the cycle.
  struct Sides {
    u32 row[kShare], cycle[kShare];
  };
  TFGW_DEVICE bool is_losing(const Sides& at, int j) const {
    return at.cycle[j] & ~(at.row[j] ^ row_is_child_[j]) & bit(j);
  }
  TFGW_DEVICE static u32 tag_of(int j, const Sides& at) { return u32(slot(j)) | (at.row[j] & bit(j) ? kRowSide : 0u); }

  // Among the losing arcs with the least flow, the last one on the cycle, walked from its apex in the direction
  // of the flow: down to the row, over the new arc, up from the column (Cunningham's rule).
  TFGW_DEVICE Leaving last_of_cycle(const Sides& sides) {
    const auto flow = [&](int j) { return is_losing(sides, j) ? u64(flow_[j]) : ~u64(0); };
    Leaving mine{~u64(0), 0, ~u32(0) << 16 | u32(lane())};
#pragma unroll
    for (int j = 0; j < kShare; ++j) mine.flow = flow(j) < mine.flow ? flow(j) : mine.flow;
    mine.flow = warp_min(mine.flow);
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      const int depth = above_[j].count();
      const u32 rank = u32(sides.row[j] & bit(j) ? 64 * W - depth : depth) << 16 | u32(slot(j));
      const bool least = mine.flow != ~u64(0) && flow(j) == mine.flow;
      if (least && rank < mine.rank) mine.rank = rank, mine.tag = tag_of(j, sides);
    }
    Leaving* const at = t_->leaving[turn_];
    turn_ ^= !Team::kSingleWarp;
    const bool first = mine.rank == warp_min(mine.rank);
    sync_warp();
    if (first) at[Team::warp()] = mine;
    Team::sync();
    Leaving out = at[0];
#pragma unroll
    for (int w = 1; w < Team::kSize; ++w) {
      const Leaving other = at[w];
      if (other.flow < out.flow || (other.flow == out.flow && other.rank < out.rank)) out = other;
    }
    return out;
  }

  static constexpr u32 kRowSide = 1 << 16;

  Memory* const t_;
  const int cols_;
  int arcs_ = 0, turn_ = 0;
  // Of each of this lane's arcs:
  u32 row_is_child_[kShare]{};  // the lane's bit, or 0
  Mask above_[kShare]{};        // path of the node below
  double of_column_[kShare]{};  // potential of its column; that of its row differs by the cost
  double cost_[kShare]{};
  u32 ends_[kShare]{};
  i64 flow_[kShare]{};
};

}  // namespace tfgw

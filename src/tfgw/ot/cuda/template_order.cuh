// The order of template nodes that weights and features do not tell apart: the counterpart of cpp/canonical.hpp, which
// explains the search. The order does not depend on the numbering of the nodes. It differs from that of the C++ core,
// because here all nodes are refined at the same time: nodes with few links come first and, among equals, those linked
// to later nodes; hashes decide the rest.
#pragma once

#include "block.cuh"
#include "team.cuh"

namespace tfgw {

// Limit on the search, in ties examined: a few hundredths of a second. A round costs at least kLeastWork.
constexpr i64 kOrderEffort = i64(1) << 28, kLeastWork = 1 << 14;

template <int P>
struct OrderMemory {
  static constexpr bool kHasTies = P <= 32;  // those of larger templates are in global memory
  static constexpr int kRow = kHasTies ? P + 1 : P;  // odd, so that rows and columns are read without bank conflicts
  u64 ties[kHasTies ? P * kRow : 1];  // hashes whose lowest bit tells whether there is a link
  u64 code[P];   // of each node's cell
  u64 key[P];    // of each node: its cell and its ties to the cells
  int cell[P];   // of each node: the position of the first node of its cell
  int twins[P];  // of each node: twins before it
  u64 warp_sum[kPrepareThreads / 32];
  int largest;
};

// Nodes are numbered by their place among the sorted nodes. A thread works on a node at a time: one warp on a small
// template, which needs no barrier of the block, and the whole block on larger ones.
template <int P>
class TemplateOrder {
  using Memory = OrderMemory<P>;
  using Team = tfgw::Team<(P <= 32 ? 1 : kPrepareThreads / 32)>;

 public:
  static constexpr bool kByOneWarp = Team::kSingleWarp;

  // The memory of the template's matrices is scratch.
  TFGW_DEVICE TemplateOrder(const Problem& p, int k, int count, Memory& memory)
      : count_(count), m_(memory), ties_(Memory::kHasTies ? m_.ties : reinterpret_cast<u64*>(p.mean + i64(k) * P * P)),
        levels_(reinterpret_cast<int*>(p.Ct + i64(k) * P * P)),
        best_trace_(reinterpret_cast<u64*>(p.C + i64(k) * P * P)), path_(reinterpret_cast<int*>(best_trace_ + P)),
        best_path_(path_ + P), order_(best_path_ + P), best_(order_ + P), target_(best_ + P), tried_(target_ + P) {
    static_assert(sizeof(u64) * P + 6 * sizeof(int) * P <= sizeof(double) * P * P, "the matrices have room for this");
  }

  // Reads the matrix entries tie(a, b) from node a to node b. All threads of the block call this, with a barrier before
  // and after. `cell` has the cells by weight and features. They go with the loops, so that twins need not compare them.
  template <class Tie>
  TFGW_DEVICE void read(Tie tie) {
#pragma unroll 1
    for (int a = thread_in_block() / 32; a < count_; a += threads_in_block() / 32)
#pragma unroll 1
      for (int b = lane(); b < count_; b += 32) {
        // Adding zero turns −0 into 0.
        const u64 forth = bits_of(tie(a, b) + 0.0), back = bits_of(tie(b, a) + 0.0);
        const u64 hash = mix(mix(back) + forth + (a == b ? 1 + m_.cell[a] : 0));
        ties_[a * Memory::kRow + b] = (hash & ~u64(1)) | ((forth | back) != 0);
      }
  }

  // Refines `cell` to the position of each node. All threads of the team call this. The code runs once per template,
  // from a cold instruction cache, so every step has one call site, and loops are hardly unrolled.
  TFGW_DEVICE void run() {
    bool finds_twins = true, separated = false, searches = false;
    int depth = 0, node = -1;
    each_of(P - count_, [&](int l) { m_.code[count_ + l] = 0, m_.key[count_ + l] = ~u64(0); });
#pragma unroll 1
    while (true) {
      compute_keys(finds_twins);
      if (finds_twins) {
        finds_twins = false;
        count_twins();
        continue;
      }
      const Split done = split();
      if (!done.discrete && done.any) continue;
      if (!searches && done.discrete) break;
      if (!separated) {
        separated = true;
        separate_twins();
        continue;
      }
      // The cells are refined: the root of the search, or what a branch led to.
      bool enters = !searches;
      if (searches && follows(trace(), depth)) {
        if (leads()) path_[depth] = node;
        Team::sync();
        if (done.discrete) depth = leaf(depth);
        else ++depth, enters = true;
      }
      searches = true;
      if (enters) enter(depth);
      node = -1;
#pragma unroll 1
      while (depth >= 0 && node < 0) {
        node = has_best_ && work_ > kOrderEffort ? -1 : next_branch(depth);
        if (node < 0) --depth;
      }
      if (depth < 0) {
        each_node([&](int place) { m_.cell[best_[place]] = place; });
        break;
      }
      individualise(depth, node);
    }
    Team::sync();
    each_node([&](int a) { m_.cell[a] += m_.twins[a]; });
    Team::sync();
  }

  // visit(a) for every node a of this thread.
  template <class Visit>
  TFGW_DEVICE void each_node(Visit visit) const {
    each_of(count_, visit);
  }

 private:
  struct Split {
    bool any, discrete;  // whether a cell was split, and whether each has one node and its twins now
  };
  // A key has the cell, the links, and a hash in this many bits. There are up to 512 cells.
  static constexpr int kLinkBits = 19, kHashBits = 36;
  static constexpr u64 kPlace = 1023;  // bits of a code that tell how far the cell is from the end

  TFGW_DEVICE static int threads() { return Team::kSingleWarp ? 32 : threads_in_block(); }
  // visit(a) for every a < count.
  template <class Visit>
  TFGW_DEVICE static void each_of(int count, Visit visit) {
    if constexpr (Team::kSingleWarp) {
      if (lane() < count) visit(lane());
    } else {
      each(count, visit);
    }
  }
  // The tie from b to a: threads next to each other have consecutive a.
  TFGW_DEVICE u64 tie(int b, int a) const { return ties_[b * Memory::kRow + a]; }
  // Of a partition on the path to the current one: the cell of each node, and the least node known to be its image
  // under an automorphism.
  TFGW_DEVICE int* cells_at(int depth) const { return levels_ + 2 * P * depth; }
  TFGW_DEVICE int* orbits_at(int depth) const { return cells_at(depth) + P; }
  TFGW_DEVICE static bool leads() { return Team::thread() == 0; }

  // visit(b) for every node b, and for some beyond, which have no code and the last key: a remainder of the unrolled loop
  // would be more code.
  template <class Visit>
  TFGW_DEVICE void each_other(Visit visit) const {
    constexpr int kUnroll = 4;
#pragma unroll 1
    for (int first = 0; first < count_; first += kUnroll)
#pragma unroll
      for (int s = 0; s < kUnroll; ++s) visit(first + s);
  }

  // Σ tie · code of the other node: a hash of the multiset of both. Refines by cells: nodes of a cell whose ties to some
  // cell differ have different keys. Keys sort by cell first, then by links. To find twins, codes are by node.
  TFGW_DEVICE void compute_keys(bool by_node) {
    each_node([&](int a) {
      const u64 code = mix(u64(by_node ? P + a : m_.cell[a]));
      m_.code[a] = (code & ~kPlace) | u64(P - m_.cell[a]);
    });
    Team::sync();
    each_node([&](int a) {
      u64 hash = 0;
      u32 links = 0;
      each_other([&](int b) {
        const u64 link = tie(b, a), code = m_.code[b];
        hash += link * code, links += (u32(link) & 1) * u32(code & kPlace);
      });
      const u64 place = u64(m_.cell[a]) << kLinkBits | links;
      m_.key[a] = by_node ? hash : place << kHashBits | hash >> (64 - kHashBits);
    });
    const i64 work = i64(count_) * count_;
    work_ += work < kLeastWork ? kLeastWork : work;
    Team::sync();
  }

  // Splits cells by `key`, smallest first.
  TFGW_DEVICE Split split() {
    bool splits = false, several = false;
    each_node([&](int a) {
      const u64 mine = m_.key[a];
      const int twins = m_.twins[a];
      int before = 0, equal = 0;
      each_other([&](int b) { before += m_.key[b] < mine, equal += (m_.key[b] == mine) & (m_.twins[b] == twins); });
      splits |= before != m_.cell[a], several |= equal > 1;
      m_.cell[a] = before;
    });
    splits = Team::any(splits);
    return {splits, !Team::any(several)};
  }

  // Twins can be exchanged without any effect, so they may have any order. They stay in one cell until the end, or until
  // a search. On entry, keys are by node.
  TFGW_DEVICE void count_twins() {
    each_node([&](int a) {
      const u64 key = m_.key[a], code = m_.code[a], loop = tie(a, a);
      int before = 0;
      each_other([&](int b) {
        const u64 shared = tie(b, a), other = tie(b, b);
        const bool alike = key + (shared - loop) * code == m_.key[b] + (shared - other) * m_.code[b];
        before += (b < a) & (loop == other) & (shared == tie(a, b)) & alike;
      });
      m_.twins[a] = before;
    });
    Team::sync();
  }

  // Splits cells by the number of twins before each node.
  TFGW_DEVICE void separate_twins() {
    each_node([&](int a) {
      int before = 0;
      each_other([&](int b) { before += (b < count_) & (m_.cell[b] == m_.cell[a]) & (m_.twins[b] < m_.twins[a]); });
      m_.key[a] = u64(before);
    });
    Team::sync();
    each_node([&](int a) { m_.cell[a] += int(m_.key[a]), m_.twins[a] = 0; });
    Team::sync();
  }

  // Keeps the current cells, and selects the first of the smallest cells with several nodes. The cells are refined, so if
  // none has more than two nodes, exchanging the two nodes of every such cell is an automorphism: then one branch suffices.
  TFGW_DEVICE void enter(int depth) {
    int* const cells = cells_at(depth);
    int* const orbits = orbits_at(depth);
    constexpr int kMost = 2 * P * P;
    int found = 0;
    bool has_large_cell = false;
    each_node([&](int a) {
      const int cell = m_.cell[a];
      int others = -1, least = a;
      each_other([&](int b) {
        const bool same = (b < count_) & (m_.cell[b] == cell);
        others += same, least = same && b < least ? b : least;
      });
      const int mine = kMost - (others * P + cell);
      if (others > 0 && mine > found) found = mine;
      has_large_cell |= others > 1;
      cells[a] = cell, orbits[a] = least;
    });
    if (Team::any(has_large_cell)) each_node([&](int a) { orbits[a] = a; });
    found = largest(found);
    if (leads()) target_[depth] = (kMost - found) % P, tried_[depth] = -1;
    Team::sync();
  }

  // The next node of the selected cell that is not an image of another, or −1.
  TFGW_DEVICE int next_branch(int depth) {
    const int *const cells = cells_at(depth), *const orbits = orbits_at(depth);
    const int target = target_[depth], tried = tried_[depth];
    int found = 0;
    each_node([&](int a) {
      if (a > tried && cells[a] == target && orbits[a] == a && P - a > found) found = P - a;
    });
    const int node = P - largest(found);
    if (leads()) tried_[depth] = node;
    Team::sync();
    return node < P ? node : -1;
  }

  // Splits a node off as the first part of its cell.
  TFGW_DEVICE void individualise(int depth, int node) {
    const int* const cells = cells_at(depth);
    each_node([&](int a) { m_.cell[a] = cells[a] + (cells[a] == cells[node] && a != node); });
    Team::sync();
  }

  // A hash of the refined cells that does not depend on the numbering.
  TFGW_DEVICE u64 trace() {
    u64 sum = 0;
    each_node([&](int a) { sum += mix(m_.code[a] ^ m_.key[a]); });
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) sum += shfl_xor(sum, distance);
    if constexpr (Team::kSingleWarp) return sum;
    if (lane() == 0) m_.warp_sum[Team::warp()] = sum;
    Team::sync();
    u64 total = 0;
#pragma unroll 1
    for (int w = 0; w < threads_in_block() / 32; ++w) total += m_.warp_sum[w];
    Team::sync();
    return total;
  }

  // Whether a branch with this hash can still lead to the best leaf. A smaller hash than that of the best discards
  // everything found so far.
  TFGW_DEVICE bool follows(u64 trace, int depth) {
    if (has_best_) {
      if (depth >= best_depth_ || trace > best_trace_[depth]) return false;
      if (trace == best_trace_[depth]) return true;
    }
    has_best_ = false, best_depth_ = depth + 1;
    Team::sync();  // every thread has compared
    if (leads()) best_trace_[depth] = trace;
    Team::sync();
    return true;
  }

  // Every node has its own cell. Returns the depth at which to continue.
  TFGW_DEVICE int leaf(int depth) {
    each_node([&](int a) { order_[m_.cell[a]] = a; });
    Team::sync();
    const int less = has_best_ && depth + 1 == best_depth_ ? compare() : -1;
    if (less == 0) return join_orbits(depth);
    if (less < 0) {
      has_best_ = true, best_depth_ = depth + 1;
      Team::sync();  // every thread has compared
      each_node([&](int place) { best_[place] = order_[place]; });
      each_of(depth + 1, [&](int d) { best_path_[d] = path_[d]; });
      Team::sync();
    }
    return depth;
  }

  // Compares the matrix in the order of the current leaf with that of the best.
  TFGW_DEVICE int compare() {
    const auto image = [&](const int* order, int e) { return tie(order[e / P], order[e % P]); };
    int found = 0;
#pragma unroll 1
    for (int e = Team::thread(); e < count_ * P && found == 0; e += threads())
      if (e % P < count_ && image(order_, e) != image(best_, e)) found = P * P - e;
    found = largest(found);
    if (found == 0) return 0;
    return image(order_, P * P - found) < image(best_, P * P - found) ? -1 : 1;
  }

  // Two leaves with equal matrices reveal an automorphism. It is valid at every depth down to where their paths
  // diverge, which is where the search continues. One thread per depth.
  TFGW_DEVICE int join_orbits(int depth) {
    int common = 0;
    while (common < depth && path_[common] == best_path_[common]) ++common;
    each_of(common + 1, [&](int d) {
      int* const orbits = orbits_at(d);
#pragma unroll 1
      for (int place = 0; place < count_; ++place) {
        int a = best_[place], b = order_[place];
        while (orbits[a] != a) a = orbits[a];
        while (orbits[b] != b) b = orbits[b];
        orbits[a < b ? b : a] = a < b ? a : b;
      }
    });
    Team::sync();
    return common;
  }

  // The largest of all threads' numbers, none of which is negative.
  TFGW_DEVICE int largest(int mine) {
    if (leads()) m_.largest = 0;
    Team::sync();
    if (mine > 0) atomic_max(&m_.largest, mine);
    Team::sync();
    const int all = m_.largest;
    Team::sync();
    return all;
  }

  const int count_;
  OrderMemory<P>& m_;
  u64* const ties_;
  int* const levels_;
  u64* const best_trace_;                 // hashes on the path to the best leaf
  int *const path_, *const best_path_;    // individualised nodes
  int *const order_, *const best_;        // nodes in the order of a leaf
  int *const target_, *const tried_;      // by depth: the cell that is split, and the last of its nodes that was tried
  i64 work_ = 0;
  bool has_best_ = false;
  int best_depth_ = 0;
};

}  // namespace tfgw

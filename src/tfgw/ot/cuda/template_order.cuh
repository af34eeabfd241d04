// The order of template nodes that weights and features do not tell apart: the block's counterpart of
// cpp/canonical.hpp, which explains the search. The order does not depend on the numbering of the nodes. It differs
// from that of the C++ core, because here all nodes are refined at the same time.
#pragma once

#include "block.cuh"

namespace tfgw {

// Limit on the search, in ties looked at: a few hundredths of a second. A round costs at least kLeastWork.
constexpr i64 kOrderEffort = i64(1) << 28, kLeastWork = 1 << 14;

template <int P>
struct OrderMemory {
  int cell[P];  // of each node: the position of the first node of its cell
  int next[P];
  u64 code[P];  // of each node's cell
  u64 key[P];   // hash of each node's ties to the cells
  u64 warp_sum[kPrepareThreads / 32];
  int largest;
};

// All threads of the block call every function. Nodes are numbered by their place in `live`.
template <int P>
class TemplateOrder {
 public:
  TFGW_DEVICE TemplateOrder(const Problem& p, int k, int count, OrderMemory<P>& memory)
      : count_(count), m_(memory), ties_(reinterpret_cast<u64*>(p.mean + i64(k) * P * P)),
        levels_(reinterpret_cast<int*>(p.Ct + i64(k) * P * P)),
        best_trace_(reinterpret_cast<u64*>(p.C + i64(k) * P * P)), path_(reinterpret_cast<int*>(best_trace_ + P)),
        best_path_(path_ + P), order_(best_path_ + P), best_(order_ + P), target_(best_ + P), tried_(target_ + P) {
    static_assert(sizeof(u64) * P + 6 * sizeof(int) * P <= sizeof(double) * P * P, "the matrices have room for this");
  }

  // On entry `cell` has the cells by weight and features, on return the position of each node. `tie(a, b)` is the
  // matrix entry from node a to node b. The memory of the template's matrices is scratch. The code runs once per
  // template, from a cold instruction cache, so every step has one call site, and loops are not unrolled.
  template <class Tie>
  TFGW_DEVICE void run(Tie tie) {
#pragma unroll 1
    for (int a = thread_in_block() / 32; a < count_; a += threads_in_block() / 32)
#pragma unroll 1
      for (int b = lane(); b < count_; b += 32) {
        // Adding zero turns −0 into 0.
        const u64 forth = bits_of(tie(a, b) + 0.0), back = bits_of(tie(b, a) + 0.0);
        ties_[a * P + b] = mix(mix(forth) + back + (a == b));
      }
    bool separated = false, searches = false;
    int depth = 0, node = -1;
    encode();
#pragma unroll 1
    while (true) {
      const bool by_node = separates_;
      compute_keys();
      if (by_node) count_twins();
      const Split done = split();
      separates_ = false;
      if (!done.discrete && done.any) continue;
      if (!searches && done.discrete) return;
      if (!separated) {
        separated = separates_ = true;
        encode();
        continue;
      }
      // The cells are refined: the root of the search, or what a branch led to.
      bool enters = !searches;
      if (searches && follows(trace(), depth)) {
        if (leads()) path_[depth] = node;
        sync_block();
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
      if (depth < 0) break;
      individualise(depth, node);
    }
    each(count_, [&](int place) { m_.cell[best_[place]] = place; });
    sync_block();
  }

 private:
  struct Split {
    bool any, discrete;  // whether a cell was split, and whether each has one node now
  };

  TFGW_DEVICE u64 tie(int a, int b) const { return ties_[a * P + b]; }
  // Of a partition on the path to the current one: the cell of each node, and the least node known to be its image
  // under an automorphism.
  TFGW_DEVICE int* cells_at(int depth) const { return levels_ + 2 * P * depth; }
  TFGW_DEVICE int* orbits_at(int depth) const { return cells_at(depth) + P; }
  TFGW_DEVICE static bool leads() { return thread_in_block() == 0; }

  // The codes of cells or, to find twins, of nodes.
  TFGW_DEVICE void encode() {
    each(count_, [&](int a) { m_.code[a] = mix(u64(separates_ ? P + a : m_.cell[a])); });
    sync_block();
  }

  // Σ tie · code of the other node: a hash of the multiset of both. Refines by cells: nodes of a cell whose ties to some
  // cell differ have different keys.
  TFGW_DEVICE void compute_keys() {
    each_row(count_, [&](int a, int part) {
      u64 key = 0;
#pragma unroll 2
      for (int b = part; b < count_ && a < count_; b += kRowThreads) key += tie(a, b) * m_.code[b];
      row_sums(key);
      if (a < count_ && part == 0) m_.key[a] = key;
    });
    const i64 work = i64(count_) * count_;
    work_ += work < kLeastWork ? kLeastWork : work;
    sync_block();
  }

  // Calls store(a, Σ counts(b, a) over the nodes b in the cell of a) for every node a.
  template <class Counts, class Store>
  TFGW_DEVICE void each_count(Counts counts, Store store) {
    each_row(count_, [&](int a, int part) {
      int sum = 0;
#pragma unroll 1
      for (int b = part; b < count_ && a < count_; b += kRowThreads)
        if (m_.cell[b] == m_.cell[a]) sum += counts(b, a);
      row_sums(sum);
      if (a < count_ && part == 0) store(a, sum);
    });
  }

  // Splits cells by `key`, smallest first.
  TFGW_DEVICE Split split() {
    constexpr int kEqual = 1 << 16;
    bool splits = false, several = false;
    each_count([&](int b, int a) { return m_.key[b] < m_.key[a] ? 1 : m_.key[b] == m_.key[a] && b != a ? kEqual : 0; },
               [&](int a, int sum) {
                 const int before = sum % kEqual;
                 splits |= before > 0, several |= sum >= kEqual;
                 m_.next[a] = m_.cell[a] + before;
               });
    splits = any_in_block(splits);
    each(count_, [&](int a) { m_.cell[a] = m_.next[a], m_.code[a] = mix(u64(m_.next[a])); });
    return {splits, !any_in_block(several)};
  }

  // Twins can be exchanged without any effect, so they may have any order. Makes their order among each other the key of
  // each node, for all cells at once. The keys on entry are by node, not by cell.
  TFGW_DEVICE void count_twins() {
    const auto rest = [&](int a, int b) { return m_.key[a] - tie(a, a) * m_.code[a] - tie(a, b) * m_.code[b]; };
    each_count([&](int b, int a) {
      return b < a && tie(a, a) == tie(b, b) && tie(a, b) == tie(b, a) && rest(a, b) == rest(b, a);
    }, [&](int a, int twins_before) { m_.next[a] = twins_before; });
    sync_block();
    each(count_, [&](int a) { m_.key[a] = u64(m_.next[a]); });
    sync_block();
  }

  // Keeps the current cells, and selects the first of the smallest cells with several nodes.
  TFGW_DEVICE void enter(int depth) {
    int* const cells = cells_at(depth);
    int* const orbits = orbits_at(depth);
    each(count_, [&](int a) { cells[a] = m_.cell[a], orbits[a] = a; });
    constexpr int kMost = 2 * P * P;
    int found = 0;
    each_count([](int b, int a) { return b != a; }, [&](int a, int others) {
      const int mine = kMost - (others * P + m_.cell[a]);
      if (others > 0 && mine > found) found = mine;
    });
    found = largest(found);
    if (leads()) target_[depth] = (kMost - found) % P, tried_[depth] = -1;
    sync_block();
  }

  // The next node of the selected cell that is not an image of another, or −1.
  TFGW_DEVICE int next_branch(int depth) {
    const int *const cells = cells_at(depth), *const orbits = orbits_at(depth);
    const int target = target_[depth], tried = tried_[depth];
    int found = 0;
    each(count_, [&](int a) {
      if (a > tried && cells[a] == target && orbits[a] == a && P - a > found) found = P - a;
    });
    const int node = P - largest(found);
    if (leads()) tried_[depth] = node;
    sync_block();
    return node < P ? node : -1;
  }

  // Splits a node off as the first part of its cell.
  TFGW_DEVICE void individualise(int depth, int node) {
    const int* const cells = cells_at(depth);
    each(count_, [&](int a) { m_.cell[a] = cells[a] + (cells[a] == cells[node] && a != node); });
    encode();
  }

  // A hash of the refined cells that does not depend on the numbering.
  TFGW_DEVICE u64 trace() {
    u64 sum = 0;
    each(count_, [&](int a) { sum += mix(m_.code[a] ^ m_.key[a]); });
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) sum += shfl_xor(sum, distance);
    if (lane() == 0) m_.warp_sum[thread_in_block() / 32] = sum;
    sync_block();
    u64 total = 0;
#pragma unroll 1
    for (int w = 0; w < threads_in_block() / 32; ++w) total += m_.warp_sum[w];
    sync_block();
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
    sync_block();  // every thread has compared
    if (leads()) best_trace_[depth] = trace;
    sync_block();
    return true;
  }

  // Every node has its own cell. Returns the depth at which to continue.
  TFGW_DEVICE int leaf(int depth) {
    each(count_, [&](int a) { order_[m_.cell[a]] = a; });
    sync_block();
    const int less = has_best_ && depth + 1 == best_depth_ ? compare() : -1;
    if (less == 0) return join_orbits(depth);
    if (less < 0) {
      has_best_ = true, best_depth_ = depth + 1;
      sync_block();  // every thread has compared
      each(count_, [&](int place) { best_[place] = order_[place]; });
      each(depth + 1, [&](int d) { best_path_[d] = path_[d]; });
      sync_block();
    }
    return depth;
  }

  // Compares the matrix in the order of the current leaf with that of the best.
  TFGW_DEVICE int compare() {
    const auto image = [&](const int* order, int e) { return tie(order[e / P], order[e % P]); };
    int found = 0;
#pragma unroll 1
    for (int e = thread_in_block(); e < count_ * P && found == 0; e += threads_in_block())
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
    each(common + 1, [&](int d) {
      int* const orbits = orbits_at(d);
#pragma unroll 1
      for (int place = 0; place < count_; ++place) {
        int a = best_[place], b = order_[place];
        while (orbits[a] != a) a = orbits[a];
        while (orbits[b] != b) b = orbits[b];
        orbits[a < b ? b : a] = a < b ? a : b;
      }
    });
    sync_block();
    return common;
  }

  // The largest of all threads' numbers, none of which is negative.
  TFGW_DEVICE int largest(int mine) {
    if (leads()) m_.largest = 0;
    sync_block();
    if (mine > 0) atomic_max(&m_.largest, mine);
    sync_block();
    const int all = m_.largest;
    sync_block();
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
  bool separates_ = false;  // whether codes are by node, to separate twins
  bool has_best_ = false;
  int best_depth_ = 0;
};

}  // namespace tfgw

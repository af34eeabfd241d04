// Kernel `index`, the first block: where each graph and each row of C begins.
#pragma once

#include "block.cuh"
#include "problem.cuh"

namespace tfgw {

constexpr int kBuckets = 1024;  // of graph sizes; larger graphs share the last one

struct IndexMemory {
  i64 warp_total[32];
  int bucket[kBuckets];
};

class Indexer {
 public:
  TFGW_DEVICE Indexer(const Problem& p, IndexMemory& memory) : p_(p), shared_(memory) {}

  TFGW_DEVICE void run() {
    each(int(kCounters), [&](int i) { p_.queue[i] = 0; });
    each(kBuckets, [&](int i) { shared_.bucket[i] = 0; });
    bool valid = find_graphs(), sorted = true;
    if (p_.edge_index) valid &= find_rows(sorted);
    if (any_in_block(!valid)) {
      if (thread_in_block() == 0) report_invalid(p_);
      return;
    }
    if (any_in_block(!sorted)) scatter_edges();
    sort_graphs();
  }

 private:
  struct Step {  // from one node or edge to the next
    i64 before, now;
  };

  // Nodes are listed graph by graph, possibly followed by padding; only the last graphs may be empty.
  TFGW_DEVICE bool find_graphs() {
    const auto label = [&](i64 i) { return p_.batch ? read_only(p_.batch + i) : 0; };
    bool valid = true;
    each(p_.nodes, [&](i64 i) { return Step{i > 0 ? label(i - 1) : -1, label(i)}; }, [&](i64 i, Step graph) {
      const i64 b = graph.now;
      const bool next = b >= 0 && b < p_.graphs && (b == graph.before || b == graph.before + 1);
      const bool fits = next || (p_.padded_nodes && b == p_.graphs && graph.before >= -1 && graph.before <= b);
      valid &= fits;
      if (!fits) return;
      p_.graph_of[i] = int(b);
#pragma unroll 1
      for (i64 c = graph.before + 1; c <= b; ++c) p_.ptr[c] = int(i);
      if (i == p_.nodes - 1)
#pragma unroll 1
        for (i64 c = b + 1; c <= p_.graphs; ++c) p_.ptr[c] = int(p_.nodes);
    });
    return valid;
  }

  // Edges listed row by row, the usual case, stay in place. A sentinel row `nodes` follows the last edge.
  TFGW_DEVICE bool find_rows(bool& sorted) {
    bool valid = true;
    const auto row = [&](i64 e) { return e < 0 ? -1 : e < p_.edges ? read_only(p_.edge_index + e) : p_.nodes; };
    each(p_.edges + 1, [&](i64 e) { return Step{row(e - 1), row(e)}; }, [&](i64 e, Step rows) {
      valid &= rows.now >= 0 && (rows.now < p_.nodes || e == p_.edges);
      sorted &= rows.before <= rows.now;
      if (rows.before < -1 || rows.now > p_.nodes) return;
#pragma unroll 1
      for (i64 r = rows.before + 1; r <= rows.now; ++r) p_.row_start[r] = int(e);
    });
    return valid;
  }

  // Counting sort of other edges: `edge_id` gets the edges of each row in any order, and `prepare` sorts them.
  TFGW_DEVICE void scatter_edges() {
    const auto row = [&](i64 e) { return read_only(p_.edge_index + e); };
    if (thread_in_block() == 0) p_.queue[kUnsorted] = 1;
    each(p_.nodes + 1, [&](i64 i) { p_.row_start[i] = 0; });
    each(p_.nodes, [&](i64 i) { p_.row_length[i] = 0; });
    sync_block();
    each(p_.edges, row, [&](i64, i64 from) { atomic_add(&p_.row_start[from + 1], 1); });
    sync_block();
    accumulate(p_.row_start, p_.nodes + 1);
    each(p_.edges, row, [&](i64 e, i64 from) {
      p_.edge_id[p_.row_start[from] + atomic_add(&p_.row_length[from], 1)] = int(e);
    });
  }

  // Inclusive in-place scan by the block.
  template <class Int>
  TFGW_DEVICE void accumulate(Int* values, i64 count) {
    const int t = thread_in_block(), threads = threads_in_block(), warp = t / 32;
    const i64 share = (count + threads - 1) / threads;
    const i64 first = share * t < count ? share * t : count, last = first + share < count ? first + share : count;
    Int sum = 0;
#pragma unroll 1
    for (i64 i = first; i < last; ++i) sum += values[i];
    const Int in_warp = running_sum(sum);
    if (lane() == 31) shared_.warp_total[warp] = in_warp;
    sync_block();
    if (warp == 0) shared_.warp_total[t] = running_sum(t < threads / 32 ? shared_.warp_total[t] : 0);
    sync_block();
    Int running = in_warp - sum + (warp > 0 ? Int(shared_.warp_total[warp - 1]) : 0);
#pragma unroll 1
    for (i64 i = first; i < last; ++i) values[i] = running += values[i];
    sync_block();
  }

  // Largest graphs first, so that no long solve runs alone at the end. Also finds the offsets of dense structures.
  TFGW_DEVICE void sort_graphs() {
    const auto size_of = [&](i64 b) { return p_.ptr[b + 1] - p_.ptr[b]; };
    const auto bucket_of = [](int n) { return kBuckets - 1 - (n < kBuckets ? n : kBuckets - 1); };
    each(p_.graphs, size_of, [&](i64 b, int n) {
      atomic_add(&shared_.bucket[bucket_of(n)], 1);
      atomic_max(&p_.queue[kLargestGraph], n);
      if (p_.dense) p_.dense_at[b + 1] = i64(n) * n;
    });
    if (p_.dense && thread_in_block() == 0) p_.dense_at[0] = 0;
    sync_block();
    accumulate(shared_.bucket, kBuckets);  // each bucket then counts the graphs of its size and larger
    if (thread_in_block() == 0)
      p_.queue[kFirstSmall] = p_.queue[kNextSmall] =
          int(p_.templates) * shared_.bucket[p_.for_small < 0 ? kBuckets - 1 : bucket_of(int(p_.for_small) + 1)];
    sync_block();
    if (p_.dense) {
      accumulate(p_.dense_at, p_.graphs + 1);
      if (thread_in_block() == 0 && p_.dense_at[p_.graphs] != p_.dense_size) report_invalid(p_);
    }
    each(p_.graphs, size_of, [&](i64 b, int n) {
      p_.order[atomic_add(&shared_.bucket[bucket_of(n)], -1) - 1] = int(b);
    });
  }

  const Problem& p_;
  IndexMemory& shared_;
};

}  // namespace tfgw

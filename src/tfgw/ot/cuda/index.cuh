// First kernel, one block: where each graph and each row of C begins, and the entries of each row, maybe not sorted yet.
#pragma once

#include "problem.cuh"

namespace tfgw {

constexpr int kIndexThreads = 1024;
constexpr int kBuckets = 1024;  // of graph sizes; graphs beyond share the last one

struct IndexMemory {
  int partial[kIndexThreads];
  int bucket[kBuckets];
};

class Indexer {
 public:
  TFGW_DEVICE Indexer(const Problem& p, IndexMemory& memory) : p_(p), shared_(memory) {}

  TFGW_DEVICE void run() {
    each(kCounters, [&](i64 i) { p_.queue[i] = 0; });
    each(kBuckets, [&](i64 i) { shared_.bucket[i] = 0; });
    if (p_.edge_index) each(p_.nodes + 1, [&](i64 i) { p_.row_start[i] = p_.t_start[i] = 0; });
    sync_block();
    find_graphs();
    sync_block();
    if (p_.edge_index) index_edges();
    sort_graphs();
  }

 private:
  template <class Visit>
  TFGW_DEVICE void each(i64 count, Visit visit) {
    for (i64 i = thread_in_block(); i < count; i += threads_in_block()) visit(i);
  }

  TFGW_DEVICE i64 label(i64 node) const { return p_.batch ? p_.batch[node] : 0; }

  TFGW_DEVICE void find_graphs() {
    each(p_.nodes, [&](i64 i) {
      const i64 b = label(i), before = i > 0 ? label(i - 1) : -1;
      const bool valid = b >= 0 && b < p_.graphs && (b == before || b == before + 1);
      if (!valid) report_invalid(p_);
      p_.graph_of[i] = valid ? int(b) : 0;
      if (valid && b != before) p_.ptr[b] = int(i);
      if (i == p_.nodes - 1)
        for (i64 c = valid ? b + 1 : 0; c <= p_.graphs; ++c) p_.ptr[c] = int(p_.nodes);
    });
  }

  // Edges that are sorted by row and column, none listed twice, as most are, stay where they are. Others get a place in
  // their row in any order, which the next kernel sorts.
  TFGW_DEVICE void index_edges() {
    each(p_.edges, [&](i64 e) {
      const i64 from = p_.edge_index[e], to = p_.edge_index[p_.edges + e];
      const bool inside = from >= 0 && to >= 0 && from < p_.nodes && to < p_.nodes;
      if (!inside || label(from) != label(to)) return report_invalid(p_);
      fetch_add(&p_.row_start[from + 1], 1);
      fetch_add(&p_.t_start[to + 1], 1);
      if (e == 0) return;
      const i64 row = p_.edge_index[e - 1], col = p_.edge_index[p_.edges + e - 1];
      if (row > from || (row == from && col >= to)) p_.queue[kUnsorted] = 1;
    });
    sync_block();
    each(p_.nodes, [&](i64 i) { p_.row_length[i] = p_.t_length[i] = 0; });
    accumulate(p_.row_start, p_.nodes + 1);
    accumulate(p_.t_start, p_.nodes + 1);
    if (p_.queue[kInvalid]) return;
    const bool sorted = !p_.queue[kUnsorted];
    each(p_.edges, [&](i64 e) {
      const i64 from = p_.edge_index[e], to = p_.edge_index[p_.edges + e];
      const i64 first = p_.ptr[p_.graph_of[from]];
      const int place = fetch_add(&p_.row_length[from], 1), at = sorted ? int(e) : p_.row_start[from] + place;
      p_.column[at] = int(to - first), p_.edge_id[at] = int(e);
      const int t_at = p_.t_start[to] + fetch_add(&p_.t_length[to], 1);
      p_.t_column[t_at] = int(from - first), p_.t_edge_id[t_at] = int(e);
    });
  }

  // Running sums, in place.
  TFGW_DEVICE void accumulate(int* values, i64 count) {
    const int threads = threads_in_block(), t = thread_in_block();
    const i64 share = (count + threads - 1) / threads;
    const i64 first = share * t < count ? share * t : count, last = first + share < count ? first + share : count;
    int sum = 0;
    for (i64 i = first; i < last; ++i) sum += values[i];
    shared_.partial[t] = sum;
    sync_block();
    for (int distance = 1; distance < threads; distance *= 2) {
      const int before = t >= distance ? shared_.partial[t - distance] : 0;
      sync_block();
      shared_.partial[t] += before;
      sync_block();
    }
    int running = shared_.partial[t] - sum;
    for (i64 i = first; i < last; ++i) values[i] = running += values[i];
    sync_block();
  }

  // Largest graphs first, so that no long one is left for the end; where dense structures begin.
  TFGW_DEVICE void sort_graphs() {
    if (p_.queue[kInvalid]) return;
    const auto bucket_of = [&](i64 b) {
      const int n = p_.ptr[b + 1] - p_.ptr[b];
      return kBuckets - 1 - (n < kBuckets ? n : kBuckets - 1);
    };
    each(p_.graphs, [&](i64 b) { fetch_add(&shared_.bucket[bucket_of(b)], 1); });
    if (thread_in_block() == 0 && p_.dense) {
      i64 at = 0;
      for (i64 b = 0; b < p_.graphs; ++b) {
        const i64 n = p_.ptr[b + 1] - p_.ptr[b];
        p_.dense_at[b] = at;
        at += n * n;
      }
      p_.dense_at[p_.graphs] = at;
    }
    each(p_.graphs, [&](i64 b) { raise_to(&p_.queue[kLargestGraph], p_.ptr[b + 1] - p_.ptr[b]); });
    sync_block();
    accumulate(shared_.bucket, kBuckets);
    each(p_.graphs, [&](i64 b) { p_.order[fetch_add(&shared_.bucket[bucket_of(b)], -1) - 1] = int(b); });
  }

  const Problem& p_;
  IndexMemory& shared_;
};

}  // namespace tfgw

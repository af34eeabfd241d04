// Kernel `starts_walk`: the walks from the nodes that anchored starts pin, once per graph and template. A block walks
// from up to 32 nodes of a graph or template at a time, one per lane; its warps share the rows.
#pragma once

#include "pinned.cuh"

namespace tfgw {

constexpr int kWindow = 4096;  // nodes searched at a time for those from which walks begin

struct WalkMemory {
  double peak[kWalkThreads / 32][32];  // by warp and walk
  u32 pinned[kWindow / 32];            // bits
  int anchor[32];                      // the nodes from which walks begin; −1: none
  int count;
};

// Division of many numbers by the same one. The quotients are those of `/`, bit for bit, but without its branches, so
// that several can be computed at a time. (Markstein: a quotient that is off by less than one unit in its last place is
// rounded correctly by a correction with the reciprocal, if that is rounded correctly. The first correction ensures the
// former.)
class Divisor {
 public:
  TFGW_DEVICE explicit Divisor(double by) : by_(by), reciprocal_(1 / by), is_usual_(by > 1e-100 && by < 1e100) {}

  // Whether `quotient` may divide a number: nothing overflows, and no correction underflows.
  TFGW_DEVICE bool divides(double v) const { return is_usual_ && (v == 0 || magnitude(v) > 1e-150); }
  TFGW_DEVICE double quotient(double v) const {
    const double first = v * reciprocal_;
    const double second = fma_rn(fma_rn(-by_, first, v), reciprocal_, first);
    return fma_rn(fma_rn(-by_, second, v), reciprocal_, second);
  }

 private:
  const double by_, reciprocal_;
  const bool is_usual_;
};

// The links of a graph in shared memory, after the walks' distributions.
struct WalkLinks {
  double* value;
  int *column, *begin, *end;  // by node, the last two

  TFGW_DEVICE static i64 bytes(i64 nodes, i64 links) { return 8 * (links + nodes) + 4 * links; }
  TFGW_DEVICE WalkLinks(double* at, int nodes, int links)
      : value(at), column(reinterpret_cast<int*>(at + links)), begin(column + links), end(begin + nodes) {}
};

template <int P>
class Walker {
 public:
  TFGW_DEVICE Walker(const Problem& p, const Starts& starts, WalkMemory& memory, double* strengths, double* global)
      : p_(p), starts_(starts), memory_(memory), strengths_(strengths), global_(global) {}

  TFGW_DEVICE void walk_on_template(int k) const {
    const int m = p_.live_count[k], anchored = int(starts_.anchored), warp = thread_in_block() / 32;
    const TemplateLinks<P> links(p_, k, strengths_);
    const double* const mean = p_.mean + i64(k) * P * P;
    const bool is_shared = distributions(m) + i64(m) * P * i64(sizeof(double)) <= starts_.walk_shared;
    double* const table = shared() + 64 * m;
    if (is_shared)
      each(m * P, [&](int e) { return read_only(mean + e); }, [&](int e, double v) { table[e] = v; });
    links.compute_strengths(thread_in_block(), threads_in_block());
#pragma unroll 1
    for (int first = 0; first < anchored; first += 16) {
      if (warp == 0) memory_.anchor[lane()] = -1;
      sync_block();
#pragma unroll 1
      for (int at = warp; at < 16 && first + at < anchored; at += threads_in_block() / 32) {
        const PinnedNodes nodes = links.at(pin(first + at));
        if (lane() == 0) memory_.anchor[2 * at] = nodes.from, memory_.anchor[2 * at + 1] = nodes.to;
      }
      sync_block();
      double* const samples = starts_.template_samples + (2 * (i64(k) * anchored + first) + lane()) * kWalkSamples * P;
      const auto keep = [&](int sample, int a, double v) { samples[sample * P + a] = v; };
      const auto step = [&](const double* matrix, const double* now, const int (&row)[kWalkRows],
                            double (&sum)[kWalkRows]) {
#pragma unroll 4
        for (int b = 0; b < m; ++b) {
          const double share = now[b * 32 + lane()];
#pragma unroll
          for (int s = 0; s < kWalkRows; ++s) sum[s] += matrix[b * P + row[s]] * share;
        }
      };
      if (is_shared) {
        walk(m, shared(), [&](const auto& row, auto& sum) { step(table, shared(), row, sum); }, keep);
      } else {
        walk(m, global_, [&](const auto& row, auto& sum) { step(mean, global_, row, sum); }, keep);
      }
    }
  }

  // From the pinned nodes number 32 · group, … of all that are pinned in any pair of the graph.
  TFGW_DEVICE void walk_on_graph(int b, int group) const {
    const GraphView graph = graph_view(p_, b);
    const int n = graph.n;
    if (32 * group >= n) return;
    find_anchors(b, n, group);
    if (memory_.anchor[0] < 0) return sync_block();
    const int anchor = memory_.anchor[lane()];
    if (thread_in_block() < 32 && anchor >= 0) starts_.walk_of[graph.first + anchor] = 32 * group + lane();
    double* const samples = samples_of(starts_, graph, 32 * group + lane());
    const auto keep = [&](int sample, int i, double v) { samples[i * kWalkSamples + sample] = v; };
    if (graph.sparse && graph.symmetric) {
      const int first = p_.row_start[graph.first], count = p_.row_start[graph.first + n] - first;
      if (distributions(n) + WalkLinks::bytes(n, count) <= starts_.walk_shared) {
        const WalkLinks links(shared() + 64 * n, n, count);
        load(graph, first, count, links);
        return walk(n, shared(), [&](const auto& row, auto& sum) { step_on(links, shared(), row, sum); }, keep);
      }
    }
    const Neighbours neighbours(p_, graph);
    double* const now = distributions(n) <= starts_.walk_shared ? shared() : global_;
    walk(n, now, [&](const auto& row, auto& sum) {
#pragma unroll
      for (int s = 0; s < kWalkRows; ++s)
        sum[s] = neighbours.both_ways(row[s], [&](int j) { return now[32 * j + lane()]; });
    }, keep);
  }

 private:
  static constexpr int kWalkRows = 2;  // rows of a warp at a time

  TFGW_DEVICE static double* shared() { return reinterpret_cast<double*>(dynamic_shared_memory()); }
  // Bytes of two distributions of 32 walks.
  TFGW_DEVICE static i64 distributions(int nodes) { return i64(nodes) * 64 * i64(sizeof(double)); }

  // Copies the links of a symmetric graph.
  TFGW_DEVICE void load(const GraphView& graph, int first, int count, const WalkLinks& links) const {
    struct Link {
      double value;
      int column;
    };
    each(count, [&](int e) { return Link{read_only(p_.value + first + e), read_only(p_.column + first + e)}; },
         [&](int e, const Link& a) { links.value[e] = a.value, links.column[e] = a.column; });
    each(graph.n, [&](int i) {
      const int begin = p_.row_start[graph.first + i] - first;
      links.begin[i] = begin, links.end[i] = begin + p_.row_length[graph.first + i];
    });
  }

  TFGW_DEVICE static void step_on(const WalkLinks& links, const double* now, const int (&row)[kWalkRows],
                                  double (&sum)[kWalkRows]) {
    int at[kWalkRows], end[kWalkRows], longest = 0;
#pragma unroll
    for (int s = 0; s < kWalkRows; ++s) {
      at[s] = links.begin[row[s]], end[s] = links.end[row[s]];
      if (end[s] - at[s] > longest) longest = end[s] - at[s];
    }
#pragma unroll 2
    for (int e = 0; e < longest; ++e)
#pragma unroll
      for (int s = 0; s < kWalkRows; ++s)
        if (at[s] + e < end[s]) sum[s] += links.value[at[s] + e] * now[32 * links.column[at[s] + e] + lane()];
  }

  // The distributions of walks from `anchor` after some of their steps, scaled to a maximum of 1. `now` has room for two
  // distributions of 32 walks, and `step(rows, sums)` computes (A + Aᵀ) times the first one at some nodes, up to a factor.
  template <class Step, class Keep>
  TFGW_DEVICE void walk(int nodes, double* now, Step step, Keep keep) const {
    const int warp = thread_in_block() / 32, warps = threads_in_block() / 32, anchor = memory_.anchor[lane()];
    double *const mine = now + lane(), *const next = mine + 32 * nodes;
#pragma unroll 1
    for (int i = warp; i < nodes; i += warps) {
      mine[32 * i] = i == anchor;
      if (anchor >= 0) keep(0, i, mine[32 * i]);
    }
    sync_block();
#pragma unroll 1
    for (int t = 1, sample = 0; sample < kWalkSamples - 1; ++t) {
      double peak = 0;
#pragma unroll 1
      for (int first = warp; first < nodes; first += kWalkRows * warps) {
        int row[kWalkRows];
        double sum[kWalkRows] = {};
#pragma unroll
        for (int s = 0; s < kWalkRows; ++s) row[s] = first + s * warps < nodes ? first + s * warps : first;
        step(row, sum);
#pragma unroll
        for (int s = 0; s < kWalkRows; ++s) next[32 * row[s]] = sum[s], peak = larger(peak, magnitude(sum[s]));
      }
      memory_.peak[warp][lane()] = peak;
      sync_block();
#pragma unroll 1
      for (int w = 0; w < warps; w += 4) {
        const auto of = [&](int s) { return memory_.peak[w + s < warps ? w + s : w][lane()]; };
        peak = larger(peak, larger(larger(of(0), of(1)), larger(of(2), of(3))));
      }
      if (peak == 0) peak = 1;
      const Divisor divisor(peak);
      const int seen = sample_after(t);
      constexpr int kUnroll = 4;
#pragma unroll 1
      for (int first = warp; first < nodes; first += kUnroll * warps) {
        double v[kUnroll], scaled[kUnroll];
        bool divides = true;
#pragma unroll
        for (int s = 0; s < kUnroll; ++s) {
          v[s] = next[32 * (first + s * warps < nodes ? first + s * warps : first)];
          scaled[s] = divisor.quotient(v[s]), divides &= divisor.divides(v[s]);
        }
        if (!divides) {
#pragma unroll
          for (int s = 0; s < kUnroll; ++s) scaled[s] = quotient(v[s], peak);
        }
#pragma unroll
        for (int s = 0; s < kUnroll; ++s) {
          const int i = first + s * warps;
          if (i >= nodes) break;
          mine[32 * i] = scaled[s];
          if (seen >= 0 && anchor >= 0) keep(seen, i, scaled[s]);
        }
      }
      if (seen >= 0) sample = seen;
      sync_block();
    }
  }

  // Writes the nodes to `anchor`, in increasing order.
  TFGW_DEVICE void find_anchors(int b, int n, int group) const {
    const PinnedNodes* const pinned = starts_.pinned + b * p_.templates * starts_.anchored;
    int before = 0;  // nodes in earlier windows
    if (thread_in_block() < 32) memory_.anchor[lane()] = -1;
#pragma unroll 1
    for (int first = 0; first < n && before < 32 * (group + 1); first += kWindow) {
      const int words = ((n - first < kWindow ? n - first : kWindow) + 31) / 32;
      each(words, [&](int w) { memory_.pinned[w] = 0; });
      sync_block();
      const auto mark = [&](int node) {
        const int at = node - first;
        if (node >= 0 && at >= 0 && at < kWindow) atomic_or(&memory_.pinned[at / 32], u32(1) << at % 32);
      };
      each(int(p_.templates * starts_.anchored), [&](int e) { return pinned[e]; },
           [&](int, const PinnedNodes& nodes) { mark(nodes.from), mark(nodes.to); });
      sync_block();
      if (thread_in_block() < 32)
        running_sums(words, [&](int w) { return popc(memory_.pinned[w]); }, [&](int w, int sum) {
          if (w == words) memory_.count = sum;
          int rank = before + sum - 32 * group;
#pragma unroll 1
          for (u32 left = w < words ? memory_.pinned[w] : 0; left; left &= left - 1, ++rank)
            if (rank >= 0 && rank < 32) memory_.anchor[rank] = first + 32 * w + lowest_bit(left);
        });
      sync_block();
      before += memory_.count;
    }
    sync_block();
  }

  const Problem& p_;
  const Starts& starts_;
  WalkMemory& memory_;
  double *const strengths_, *const global_;
};

// Templates, then the first group of nodes of each graph, largest graphs first, then the second groups, and so on: most
// graphs have one group only, and the blocks that have work should not be on few multiprocessors.
template <int P>
TFGW_DEVICE void walk_all(const Problem& p, const Starts& starts) {
  TFGW_SHARED WalkMemory memory;
  TFGW_SHARED double strengths[P];
  const int largest = p.queue[kLargestGraph], rows = largest > P ? largest : P;
  const i64 each = 64 * i64(rows), active = p.scratch_size / each;  // doubles of working memory
  const int blocks = blocks_in_grid() < active ? blocks_in_grid() : int(active);
  if (block_index() >= blocks) return;
  const Walker<P> walker(p, starts, memory, strengths, p.scratch + block_index() * each);
  const i64 most = largest < starts.walks ? largest : starts.walks, groups = (most + 31) / 32;
#pragma unroll 1
  for (i64 item = block_index(); item < p.templates + p.graphs * groups; item += blocks) {
    const i64 of_graph = item - p.templates;
    if (of_graph < 0) walker.walk_on_template(int(item));
    else walker.walk_on_graph(p.order[of_graph % p.graphs], int(of_graph / p.graphs));
  }
}

}  // namespace tfgw

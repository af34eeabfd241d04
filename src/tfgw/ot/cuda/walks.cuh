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

template <int P>
class Walker {
 public:
  TFGW_DEVICE Walker(const Problem& p, const Starts& starts, WalkMemory& memory, double* strengths, double* global,
                     double* shared)
      : p_(p), starts_(starts), memory_(memory), strengths_(strengths), global_(global), shared_(shared) {}

  TFGW_DEVICE void walk_on_template(int k) const {
    const int m = p_.live_count[k], anchored = int(starts_.anchored);
    double* const now = room_for(m);
    const double* const mean = p_.mean + i64(k) * P * P;
#pragma unroll 1
    for (int first = 0; first < anchored; first += 16) {
      if (thread_in_block() < 32) {
        const TemplateLinks<P> links(p_, k, strengths_);
        memory_.anchor[lane()] = -1;
        sync_warp();
#pragma unroll 1
        for (int at = 0; at < 16 && first + at < anchored; ++at) {
          const PinnedNodes nodes = links.at(pin(first + at));
          if (lane() == 0) memory_.anchor[2 * at] = nodes.from, memory_.anchor[2 * at + 1] = nodes.to;
        }
      }
      sync_block();
      double* const samples = starts_.template_samples + (2 * (i64(k) * anchored + first) + lane()) * kWalkSamples * P;
      walk(m, now, [&](int a) {
        struct Term {
          double weight, share;
        };
        double sum = 0;
        unrolled<8>(0, m, 1, [&](int b) { return Term{read_only(mean + b * P + a), now[b * 32 + lane()]}; },
                 [&](int, const Term& t) { sum += t.weight * t.share; });
        return sum;
      }, [&](int sample, int a, double v) { samples[sample * P + a] = v; });
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
    double* const now = room_for(n);
    double* const samples = samples_of(starts_, graph, 32 * group + lane());
    const Neighbours neighbours(p_, graph);
    walk(n, now, [&](int i) { return neighbours.both_ways(i, [&](int j) { return now[32 * j + lane()]; }); },
         [&](int sample, int i, double v) { samples[i * kWalkSamples + sample] = v; });
  }

 private:
  // Shared memory if two distributions on so many nodes fit.
  TFGW_DEVICE double* room_for(int nodes) const {
    return i64(nodes) * 64 * i64(sizeof(double)) <= starts_.walk_shared ? shared_ : global_;
  }

  // The distributions of walks from `anchor` after some of their steps, scaled to a maximum of 1. `now` has room for two
  // distributions of 32 walks, and `step(i)` is (A + Aᵀ) times the first one at node i, up to a factor.
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
      for (int i = warp; i < nodes; i += warps) {
        const double v = step(i);
        next[32 * i] = v;
        peak = larger(peak, magnitude(v));
      }
      memory_.peak[warp][lane()] = peak;
      sync_block();
#pragma unroll 4
      for (int w = 0; w < warps; ++w) peak = larger(peak, memory_.peak[w][lane()]);
      if (peak == 0) peak = 1;
      const int seen = sample_after(t);
#pragma unroll 2
      for (int i = warp; i < nodes; i += warps) {
        const double v = quotient(next[32 * i], peak);  // a walk is at few nodes at first
        mine[32 * i] = v;
        if (seen >= 0 && anchor >= 0) keep(seen, i, v);
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
  double *const strengths_, *const global_, *const shared_;
};

// Templates, then graphs, largest first.
template <int P>
TFGW_DEVICE void walk_all(const Problem& p, const Starts& starts) {
  TFGW_SHARED WalkMemory memory;
  TFGW_SHARED double strengths[P];
  const int largest = p.queue[kLargestGraph], rows = largest > P ? largest : P;
  const i64 each = 64 * i64(rows), active = p.scratch_size / each;  // doubles of working memory
  const int blocks = blocks_in_grid() < active ? blocks_in_grid() : int(active);
  if (block_index() >= blocks) return;
  const Walker<P> walker(p, starts, memory, strengths, p.scratch + block_index() * each,
                         reinterpret_cast<double*>(dynamic_shared_memory()));
  const i64 most = largest < starts.walks ? largest : starts.walks, groups = (most + 31) / 32;
#pragma unroll 1
  for (i64 item = block_index(); item < p.templates + p.graphs * groups; item += blocks) {
    const i64 of_graph = item - p.templates;
    if (of_graph < 0) walker.walk_on_template(int(item));
    else walker.walk_on_graph(p.order[of_graph / groups], int(of_graph % groups));
  }
}

}  // namespace tfgw

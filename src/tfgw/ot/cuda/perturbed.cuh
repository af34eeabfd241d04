// Random changes of costs, and starts near minima found earlier: the counterpart of cpp/perturb.cpp, which explains them.
#pragma once

#include "begin_memory.cuh"

namespace tfgw {

// Run by one warp.
template <int P>
class PerturbedCost {
 public:
  TFGW_DEVICE PerturbedCost(const BeginPair<P>& pair, const BeginMemory<P>& memory, int start)
      : pair_(pair), at_(memory), n_(pair.n), m_(pair.m), start_(start) {}

  // Writes a cost with numbers between −scale and scale added.
  TFGW_DEVICE void add_noise(const double* from, double scale, double* cost) const {
    find_places();
    each_entry<P, Team<1>>(n_, [&](int e, int i, int k) {
      cost[e] = from[e] + (k < m_ ? scale * noise(start_, at_.place[i], k) : 0.0);
    });
  }

  // Writes the cost near one minimum or between two.
  TFGW_DEVICE void write(const LowestValues& lowest, const double* gradients, double* cost) const {
    find_places();
    const auto gradient = [&](int place) { return gradients + i64(lowest.slot[place]) * n_ * P; };
    const double* const one = gradient(near_minimum(lowest.count, start_));
    const double* const two = is_between_minima(start_) ? gradient(other_minimum(lowest.count, start_)) : one;
    double largest = 0;
    each_entry<P, Team<1>>(n_, [&](int e, int, int k) {
      cost[e] = is_between_minima(start_) ? 0.5 * (one[e] + two[e]) : one[e];
      if (k < m_) largest = larger(largest, magnitude(cost[e]));
    });
    largest = warp_max(largest);
    const int count = choose_patch();
    for (int at = 0; at < count; ++at) {
      const int i = at_.patch[at];
      for (int k = lane(); k < m_; k += 32) cost[i * P + k] += largest * noise(start_, at_.place[i], k);
    }
  }

 private:
  // Place of each node when nodes are sorted by how they and their neighbourhoods compare to the template.
  TFGW_DEVICE void find_places() const {
    double *const own = at_.keys, *const key = own + n_, *const around = key + n_;
#pragma unroll 1
    for (int i = lane(); i < n_; i += 32) {
      double sum = pair_.p.out_mean[pair_.graph.first + i] + pair_.p.in_mean[pair_.graph.first + i];
#pragma unroll 1
      for (int k = 0; k < m_; ++k) sum += quotient(pair_.linear[i * P + k], k + 1);
      own[i] = key[i] = sum;
    }
    sync_warp();
#pragma unroll 1
    for (int hop = 0; hop < kHops; ++hop) {
      double peak = 0;
#pragma unroll 1
      for (int i = lane(); i < n_; i += 32) {
        around[i] = pair_.neighbours.both_ways(i, [&](int j) { return key[j]; });
        peak = larger(peak, magnitude(around[i]));
      }
      peak = warp_max(peak);
      sync_warp();
      for (int i = lane(); i < n_; i += 32) key[i] = own[i] + (peak > 0 ? quotient(around[i], peak) : 0.0);
      sync_warp();
    }
#pragma unroll 1
    for (int i = lane(); i < n_; i += 32) {
      const double mine = key[i];
      int place = 0;
#pragma unroll 4
      for (int j = 0; j < n_; ++j) place += key[j] < mine || (key[j] == mine && j < i);
      at_.place[i] = place;
    }
    sync_warp();
  }

  // Linked nodes, breadth first: a random node, its neighbours in random order, their neighbours, … Returns how many.
  TFGW_DEVICE int choose_patch() const {
    const int size = patch_size(n_);
    int* const nodes = at_.patch;
    int count = 0, next = 0;
#pragma unroll 1
    while (count < size) {
      const int found = earliest(next < count ? nodes[next] : -1, nodes, count);
      if (found < 0) {
        ++next;
        continue;
      }
      if (lane() == 0) nodes[count] = found;
      ++count;
      sync_warp();
    }
    return size;
  }

  // The node whose turn comes first among those not yet taken: of the neighbours of a node, or of all. −1 if none is left.
  TFGW_DEVICE int earliest(int of, const int* taken, int count) const {
    u64 first = ~u64(0);
    int node = -1;
    const auto consider = [&](int i, double c) {
      bool is_taken = c == 0;
      for (int at = 0; at < count; ++at) is_taken |= taken[at] == i;
      const u64 mine = sortable(turn(start_, at_.place[i]));
      if (!is_taken && mine < first) first = mine, node = i;
    };
    if (of >= 0) pair_.neighbours.each(of, true, lane(), 32, consider);
    else
      for (int i = lane(); i < n_; i += 32) consider(i, 1.0);
    const u64 lowest = warp_min(first);
    const u32 found = warp_min(first == lowest && node >= 0 ? u32(node) : ~0u);
    return found == ~0u ? -1 : int(found);
  }

  const BeginPair<P>& pair_;
  const BeginMemory<P>& at_;
  const int n_, m_, start_;
};

}  // namespace tfgw

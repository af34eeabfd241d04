// Starts that pin a link of the graph to a link of the template: the counterpart of cpp/starts.cpp, which explains them.
#pragma once

#include "begin_memory.cuh"

namespace tfgw {

// Run by all warps of the team.
template <int P, class Team>
class AnchoredCost {
 public:
  TFGW_DEVICE AnchoredCost(const Starts& starts, const BeginPair<P>& pair, i64 index)
      : starts_(starts), pair_(pair), index_(index) {}

  // Calls write(entry, value) with the cost of anchored start number `number`: features, and how differently the walks
  // from the pinned nodes have spread.
  template <class Write>
  TFGW_DEVICE void each_entry(int number, Write write) const {
    const PinnedNodes nodes = starts_.pinned[index_ * starts_.anchored + number];
    const bool both = nodes.to >= 0;
    const int* const walk_of = starts_.walk_of + pair_.graph.first;
    const double* const from = samples_of(starts_, pair_.graph, walk_of[nodes.from]);
    const double* const to = both ? samples_of(starts_, pair_.graph, walk_of[nodes.to]) : from;
    const double* const there =
        starts_.template_samples + 2 * (i64(pair_.k) * starts_.anchored + number) * kWalkSamples * P;
    const double scale = starts_.scale[index_];
    each_own_column<P, Team>([&](int k, int top, int step) {
      const bool live = k < pair_.m;
      double first[kWalkSamples], second[kWalkSamples];
#pragma unroll
      for (int s = 0; s < kWalkSamples; ++s) {
        first[s] = live ? read_only(there + s * P + k) : 0.0;
        second[s] = live && both ? read_only(there + (kWalkSamples + s) * P + k) : 0.0;
      }
#pragma unroll 2
      for (int i = top; i < pair_.n; i += step) {
        double sum = 0;
#pragma unroll
        for (int s = 0; s < kWalkSamples; s += 2) {
          const Double2 a = *as_double2(from + i * kWalkSamples + s), b = *as_double2(to + i * kWalkSamples + s);
          add_squares(sum, a.x - first[s], both ? b.x - second[s] : 0.0);
          add_squares(sum, a.y - first[s + 1], both ? b.y - second[s + 1] : 0.0);
        }
        const int e = i * P + k;
        write(e, live ? pair_.linear[e] + scale * sum : kPadCost);
      }
    });
  }

 private:
  TFGW_DEVICE static void add_squares(double& sum, double first, double second) {
    sum += first * first + second * second;
  }

  const Starts& starts_;
  const BeginPair<P>& pair_;
  const i64 index_;
};

}  // namespace tfgw

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
  // from the pinned nodes have spread. `buffer` has room for the samples of four rows, which each warp loads together
  // while it works on the rows before.
  template <class Write>
  TFGW_DEVICE void each_entry(int number, Double2* buffer, Write write) const {
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
      constexpr int kHalf = kWalkSamples / 2, kRowsAtOnce = Shape<P>::kRowsAtOnce;
      constexpr int kEach = 32 / kWalkSamples / kRowsAtOnce;  // rows of each lane at a time
      const int n = pair_.n, slot = lane() / kWalkSamples, part = lane() % kWalkSamples;
      const int warp_top = top - Shape<P>::my_row();
      const double* const samples = (part < kHalf ? from : to) + 2 * (part % kHalf);
      const auto load = [&](int done) {  // for the rows of the warp after `done` rows of each lane
        const int i = warp_top + slot % kRowsAtOnce + (done + slot / kRowsAtOnce) * step;
        return *as_double2(samples + (i < n ? i : n - 1) * kWalkSamples);
      };
      Double2 coming = load(0);
#pragma unroll 1
      for (int done = 0; warp_top + done * step < n; done += kEach) {
        sync_warp();  // the rows before have been read
        buffer[lane()] = coming;
        sync_warp();
        coming = load(done + kEach);
#pragma unroll 2
        for (int u = 0; u < kEach; ++u) {
          const int i = top + (done + u) * step, e = i * P + k;
          const Double2* const row = buffer + (u * kRowsAtOnce + Shape<P>::my_row()) * kWalkSamples;
          const double linear = live && i < n ? pair_.linear[e] : 0.0;
          double sum = 0;
#pragma unroll
          for (int s = 0; s < kHalf; ++s) {
            const Double2 a = row[s], b = row[kHalf + s];
            add_squares(sum, a.x - first[2 * s], both ? b.x - second[2 * s] : 0.0);
            add_squares(sum, a.y - first[2 * s + 1], both ? b.y - second[2 * s + 1] : 0.0);
          }
          if (i < n) write(e, live ? linear + scale * sum : kPadCost);
        }
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

// The first basis of the simplex: rows ship greedily, those with the largest regret first.
#pragma once

#include "initial_state.cuh"
#include "bits.cuh"
#include "team.cuh"

namespace tfgw {

// Arrays with one entry per row; `centred` is (rows, P).
struct FirstBasisMemory {
  double* regret;
  i64* supply;
  int* order;
  u64* centred;
};

template <int P, class Team>
class FirstBasis {
  using S = Shape<P>;

 public:
  TFGW_DEVICE FirstBasis(int rows, int cols, const FirstBasisMemory& memory) : rows_(rows), cols_(cols), at_(memory) {}

  // Costs minus their column means (a cost that all rows pay does not matter), and each row's regret, the gap between
  // its cheapest and second cheapest column. Run by all warps, each on its share of the rows. `cost` and `centred` may
  // be the same memory.
  TFGW_DEVICE void compute_regrets(const double* cost) {
    const int each = (rows_ + Team::kSize - 1) / Team::kSize, first = Team::warp() * each;
    const int last = first + each < rows_ ? first + each : rows_;
    double mean[S::kColumnsPerLane];
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q) {
      mean[q] = 0;
#pragma unroll 4
      for (int i = S::my_row(); i < rows_; i += S::kRowsAtOnce) mean[q] += cost[i * P + S::my_column() + 32 * q];
      for (int distance = P; distance < 32; distance *= 2) mean[q] += shfl_xor(mean[q], distance);
      mean[q] /= rows_;
    }
    Team::sync();
#pragma unroll 1
    for (int i = first + S::my_row(); i < last; i += S::kRowsAtOnce)
#pragma unroll
      for (int q = 0; q < S::kColumnsPerLane; ++q) {
        const int k = S::my_column() + 32 * q;
        at_.centred[i * P + k] = k < cols_ ? sortable(cost[i * P + k] - mean[q]) : ~u64(0);
      }
    sync_warp();
#pragma unroll 1
    for (int i = first + lane(); i < last; i += 32) {
      double least = kPadCost, second = kPadCost;
      int k = lane() % cols_;  // lanes start at different columns to avoid bank conflicts
#pragma unroll 2
      for (int s = 0; s < cols_; ++s) {
        const double c = from_sortable(at_.centred[i * P + k]);
        second = smaller(second, larger(least, c));
        least = smaller(least, c);
        k = k + 1 < cols_ ? k + 1 : 0;
      }
      at_.regret[i] = cols_ > 1 ? second - least : 0.0;
    }
  }

  // Rows in decreasing order of regret. Run by all warps.
  TFGW_DEVICE void order_rows() {
#pragma unroll 1
    for (int i = Team::thread(); i < rows_; i += Team::kThreads) {
      const double mine = at_.regret[i];
      int rank = 0;
#pragma unroll 4
      for (int j = 0; j < rows_; ++j) rank += at_.regret[j] > mine || (at_.regret[j] == mine && j < i);
      at_.order[rank] = i;
    }
  }

  // Ships greedily, each row to its cheapest open column, with ties decided by rules.cuh (extra_demand). Every demand
  // must be positive. Run by one warp, which searches for the next row's cheapest column while it ships from a row.
  TFGW_DEVICE void ship(const i64* demand, Arc* arcs) const {
    i64 want[S::kColumnsPerLane];
    int extra_want[S::kColumnsPerLane];
    bool open[S::kColumnsPerLane];
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q) {
      const int k = lane() + 32 * q;
      open[q] = k < cols_;
      want[q] = open[q] ? demand[k] : 0;
      extra_want[q] = extra_demand(k == cols_ - 1, rows_, cols_);
    }
    int open_cols = cols_;
    Row now = row_at(0), next = row_at(rows_ > 1);
    Cheapest cheapest = cheapest_of(now, open);
    int owner = owner_of(cheapest);
#pragma unroll 1
    for (int r = 0; r < rows_; ++r) {
      const Row after_next = row_at(r + 2 < rows_ ? r + 2 : rows_ - 1);
      Cheapest of_next = cheapest_of(next, open);
      bool closed = false;
      int extra_have = 1;
#pragma unroll 1
      while (true) {
        u64 mine = u64(want[0]);
        int extra_mine = extra_want[0];
#pragma unroll
        for (int q = 1; q < S::kColumnsPerLane; ++q)
          if (q == cheapest.q) mine = u64(want[q]), extra_mine = extra_want[q];
        const i64 wanted = i64(shfl(mine, owner));
        const int extra = shfl(extra_mine, owner);
        const bool fills = open_cols > 1 && fills_column(wanted, now.have, extra, extra_have);
        if (lane() == owner) *arcs = {fills ? wanted : now.have, now.row, owner + 32 * cheapest.q};
        ++arcs;
#pragma unroll
        for (int q = 0; q < S::kColumnsPerLane; ++q) {
          if (lane() != owner || q != cheapest.q) continue;
          want[q] -= now.have, extra_want[q] -= extra_have;
          open[q] = !fills;
        }
        if (!fills) break;
        now.have -= wanted, extra_have -= extra;
        --open_cols, closed = true;
        cheapest = cheapest_of(now, open);
        owner = owner_of(cheapest);
      }
      if (closed) of_next = cheapest_of(next, open);
      now = next, next = after_next, cheapest = of_next;
      owner = owner_of(cheapest);
    }
  }

 private:
  struct Row {
    int row;
    i64 have;
    u64 key[S::kColumnsPerLane];  // by column of this lane
  };
  struct Cheapest {
    u64 key;           // the lowest of this lane's open columns
    int q;             // its column
    u32 mine, lowest;  // the lane's key (with_lane), and the lowest of all lanes
  };

  TFGW_DEVICE Row row_at(int place) const {
    Row r;
    r.row = at_.order[place], r.have = at_.supply[r.row];
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q) r.key[q] = at_.centred[r.row * P + (lane() + 32 * q) % P];
    return r;
  }
  TFGW_DEVICE static Cheapest cheapest_of(const Row& row, const bool (&open)[S::kColumnsPerLane]) {
    Cheapest c{~u64(0), 0, 0, 0};
#pragma unroll
    for (int q = 0; q < S::kColumnsPerLane; ++q)
      if (open[q] && row.key[q] < c.key) c.key = row.key[q], c.q = q;
    c.mine = with_lane(c.key), c.lowest = warp_min(c.mine);
    return c;
  }
  TFGW_DEVICE static int owner_of(const Cheapest& c) {
    const bool tied = same_but_lane(c.mine, c.lowest);
    const u32 all = ballot(tied);
    return all & (all - 1) ? lane_of_least_tied(c.key, tied, u32(lane() + 32 * c.q)) : int(c.lowest & 31);
  }

  const int rows_, cols_;
  const FirstBasisMemory at_;
};

}  // namespace tfgw

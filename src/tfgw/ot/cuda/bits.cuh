// What the two kinds of basis share: how many columns a lane has, bit masks over the warp's registers, cycles.
#pragma once

#include "problem.cuh"

namespace tfgw {

template <int P>  // padded columns: 16, 32, 64 or 128
struct Shape {
  static constexpr int kColumnsPerLane = (P + 31) / 32;  // lane + 32 q
  static constexpr int kRowsAtOnce = P < 32 ? 32 / P : 1;
  static constexpr int kGroup = 4 * kRowsAtOnce;  // rows of `packed` (problem.cuh) that belong together
};

// What a basis keeps of each row outside the warp's registers; `anchor`, `base` and `u` as in core_tree.cuh.
struct RowArrays {
  int *anchor, *begin;
  double *base, *u;
};

// One of several registers.
template <int N, class T>
TFGW_DEVICE T pick(const T (&from)[N], int j) {
  T v = from[0];
#pragma unroll
  for (int s = 1; s < N; ++s) {
    const T other = in_register(from[s]);
    v = j == s ? other : v;
  }
  return v;
}

template <class T, int N>
TFGW_DEVICE T from_owner(const T (&values)[N], int index) {  // value 32 j + l is that of lane l
  return from_lane(pick(values, index >> 5), index & 31);
}

TFGW_DEVICE int before_me(u32 lanes) { return bits_set(lanes & ((u32(1) << lane()) - 1)); }

template <int N>
struct alignas(4 * (N & -N)) Bits {
  u32 word[N];
  TFGW_DEVICE bool has(int bit) const { return pick(word, bit >> 5) >> (bit & 31) & 1; }
  TFGW_DEVICE bool has_mine(int j) const { return word[j] >> lane() & 1; }
  TFGW_DEVICE void flip(int bit) {
#pragma unroll
    for (int w = 0; w < N; ++w) word[w] ^= bit >> 5 == w ? u32(1) << (bit & 31) : 0;
  }
  TFGW_DEVICE int lowest_free() const {
    int found = -1;
#pragma unroll
    for (int w = N - 1; w >= 0; --w)
      if (~word[w]) found = 32 * w + lowest_bit(~word[w]);
    return found;
  }
  TFGW_DEVICE bool any() const {
    u32 all = 0;
#pragma unroll
    for (int w = 0; w < N; ++w) all |= word[w];
    return all != 0;
  }
  TFGW_DEVICE int count() const {
    int bits = 0;
#pragma unroll
    for (int w = 0; w < N; ++w) bits += bits_set(word[w]);
    return bits;
  }
};

// What both bases do with the cycle that an entering arc closes: the arcs on the way to the root from its row or from its
// column, but not from both.

// The losing arc with the least flow, or −1. Among several it is the last one met when the cycle is walked from its apex
// in the direction of the flow: down to the row, over the new arc, up from the column (Cunningham's rule). `depth(j)` is
// that of the lower node of this lane's arc j; all lanes ask for it together.
template <int N, class Depth>
TFGW_DEVICE int blocking_slot(const Bits<N>& from_row, const Bits<N>& from_col, const Bits<N>& row_is_child,
                              const i64 (&flows)[N], Depth depth, bool& row_side, i64& flow) {
  u64 mine[N];
  u64 least = ~u64(0);
#pragma unroll
  for (int j = 0; j < N; ++j) {
    // On the row's side arcs lose flow that lead up from a row, on the column's side those that lead down to one.
    const u32 losing = (from_row.word[j] ^ from_col.word[j]) & ~(from_row.word[j] ^ row_is_child.word[j]);
    mine[j] = losing >> lane() & 1 ? u64(flows[j]) : ~u64(0);
    least = mine[j] < least ? mine[j] : least;
  }
  const u64 lowest = warp_min(least);
  flow = i64(lowest);
  if (lowest == ~u64(0)) return -1;
  int slot = -1, holders = 0;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const u32 all = ballot(mine[j] == lowest);
    if (all) slot = lowest_bit(all) + 32 * j;
    holders += bits_set(all);
  }
  if (holders > 1) {
    u32 first = ~0u;
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const int below = depth(j);
      const u32 rank = u32(from_row.has_mine(j) ? 64 * N - below : below) << 16 | u32(lane() + 32 * j);
      first = mine[j] == lowest && rank < first ? rank : first;
    }
    slot = int(warp_min(first) & 0xffff);
  }
  row_side = from_row.has(slot);
  return slot;
}

// Sends flow along the cycle.
template <int N>
TFGW_DEVICE void push(const Bits<N>& from_row, const Bits<N>& from_col, const Bits<N>& row_is_child, i64 flow,
                      i64 (&flows)[N]) {
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const u32 cycle = from_row.word[j] ^ from_col.word[j], gaining = from_row.word[j] ^ row_is_child.word[j];
    flows[j] += !(cycle >> lane() & 1) ? 0 : gaining >> lane() & 1 ? flow : -flow;
  }
}

}  // namespace tfgw

// Shared by both kinds of basis: the assignment of columns to lanes, and bit masks over the warp's registers.
#pragma once

#include "problem.cuh"

namespace tfgw {

template <int P>  // padded columns: 16, 32, 64, 128, 256 or 512
struct Shape {
  static constexpr int kColumnsPerLane = (P + 31) / 32;  // lane + 32 q
  static constexpr int kRowsAtOnce = P < 32 ? 32 / P : 1;
  static constexpr int kGroup = 4 * kRowsAtOnce;  // rows of `packed` (problem.cuh) that belong together

  TFGW_DEVICE static int groups(int rows) { return (rows + kGroup - 1) / kGroup; }
  // A row of fewer than 32 columns occupies a part of the warp; the other lanes work on the next rows.
  TFGW_DEVICE static int my_row() { return P < 32 ? lane() / P : 0; }
  TFGW_DEVICE static int my_column() { return P < 32 ? lane() % P : lane(); }
};

// Per-row state of a basis outside the warp's registers (core_tree.cuh).
struct RowArrays {
  int* anchor;
  double *base, *u;
};

// Candidates for entering arcs: for each of a lane's columns a row or −1, the cost, and the cost less the row's
// potential.
template <int N>
struct Candidates {
  int row[N];
  double cost[N], lowest[N];
};

// One of several registers, by index.
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
TFGW_DEVICE T from_owner(const T (&values)[N], int index) {  // value 32 j + l belongs to lane l
  return shfl(pick(values, index >> 5), index & 31);
}

template <int N>
struct alignas(4 * (N & -N)) Bits {
  u32 word[N];
  TFGW_DEVICE bool has(int bit) const { return pick(word, bit >> 5) >> (bit & 31) & 1; }
  TFGW_DEVICE bool has_mine(int j) const { return word[j] >> lane() & 1; }
  TFGW_DEVICE void flip(int bit) {
#pragma unroll
    for (int w = 0; w < N; ++w) word[w] ^= bit >> 5 == w ? u32(1) << (bit & 31) : 0;
  }
  TFGW_DEVICE void flip(const Bits& bits) {
#pragma unroll
    for (int w = 0; w < N; ++w) word[w] ^= bits.word[w];
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
    for (int w = 0; w < N; ++w) bits += popc(word[w]);
    return bits;
  }
};

}  // namespace tfgw

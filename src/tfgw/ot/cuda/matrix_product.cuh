// Matrix products on tensor cores (float64 MMA), in tiles of 16 × 8.
#pragma once

#include "team.cuh"

namespace tfgw {

// Row pitch of a matrix of P columns that is read in tiles, chosen so that the rows of a tile are in different banks of
// shared memory.
template <int P>
constexpr int kPitch = P + 4;

// A matrix and its row pitch.
struct Rows {
  double* at;
  int pitch;
};

// out[i, :] = Σ_l a[i · row_step + l · col_step] · B[l, :] for i < rows and l < inner; B and `out` have P columns, of
// which those from `cols` on become 0. Also written to `kept`, of pitch P, if not null. Every warp computes its share
// of the rows, with 4 kUnroll loads of each row in flight.
template <int P, class Team, int kUnroll, class Step>
TFGW_DEVICE void multiply(const double* a, Step row_step, Step col_step, int rows, int inner, int cols, const Rows& B,
                          const Rows& out, double* kept) {
  constexpr int kTiles = P < 32 ? P / 8 : 4;  // adjacent tiles of a warp at a time
  const int high = lane() / 4, low = lane() % 4;  // see multiply_add
#pragma unroll 1
  for (int first = 16 * Team::warp() + high; first < rows + high; first += 16 * Team::kSize)
#pragma unroll 1
    for (int left = 0; left < P; left += 8 * kTiles) {
      double sum[kTiles][2][2] = {};
      const double* from[2];
#pragma unroll
      for (int s = 0; s < 2; ++s) from[s] = a + (first + 8 * s < rows ? first + 8 * s : rows - 1) * row_step;
#pragma unroll 1
      for (int l = low; l < inner + low; l += 4 * kUnroll) {
        double x[kUnroll][2], y[kUnroll][kTiles];
#pragma unroll
        for (int d = 0; d < kUnroll; ++d)
#pragma unroll
          for (int s = 0; s < 2; ++s) x[d][s] = l + 4 * d < inner ? from[s][(l + 4 * d) * col_step] : 0.0;
#pragma unroll
        for (int d = 0; d < kUnroll; ++d) {
          const double* const b = B.at + (l + 4 * d < inner ? l + 4 * d : 0) * B.pitch + left + high;
#pragma unroll
          for (int q = 0; q < kTiles; ++q) y[d][q] = b[8 * q];
        }
#pragma unroll
        for (int d = 0; d < kUnroll; ++d)
#pragma unroll
          for (int q = 0; q < kTiles; ++q)
            if (left + 8 * q < cols) multiply_add(sum[q], x[d], y[d][q]);
      }
#pragma unroll
      for (int s = 0; s < 2; ++s) {
        const int i = first + 8 * s;
        if (i >= rows) break;
#pragma unroll
        for (int q = 0; q < kTiles; ++q) {
          const int k = left + 8 * q + 2 * low;
          const Double2 two = {sum[q][s][0], sum[q][s][1]};
          *as_double2(out.at + i * out.pitch + k) = two;
          if (kept) *as_double2(kept + i * P + k) = two;
        }
      }
    }
}

}  // namespace tfgw

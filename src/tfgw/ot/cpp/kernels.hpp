// The vectorised loops of the core, each compiled for the baseline and for AVX2 and selected once at run time.
//
// Matrices that run over template nodes are stored row by row with a stride `ld`, a multiple of kLane; padding
// columns hold kPadCost in cost matrices (never picked) and 0 everywhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "rules.cuh"

namespace tfgw {

constexpr int kLane = 4;

// Memory aligned to a cache line, so that no vector of a row straddles two. Carved from a larger allocation, whose
// address is stored in front of it: the system's aligned allocation is many times slower than a plain one.
template <class T>
struct CacheAligned {
  using value_type = T;
  CacheAligned() = default;
  template <class U>
  CacheAligned(const CacheAligned<U>&) {}
  T* allocate(size_t count) {
    if (count > (size_t(-1) - kLine) / sizeof(T)) throw std::bad_array_new_length();
    char* const piece = static_cast<char*>(::operator new(count * sizeof(T) + kLine));
    char* const line = piece + (kLine - reinterpret_cast<uintptr_t>(piece) % kLine);
    std::memcpy(line - sizeof piece, &piece, sizeof piece);
    return reinterpret_cast<T*>(line);
  }
  void deallocate(T* memory, size_t) {
    char* piece;
    std::memcpy(&piece, reinterpret_cast<char*>(memory) - sizeof piece, sizeof piece);
    ::operator delete(piece);
  }
  bool operator==(const CacheAligned&) const { return true; }
  bool operator!=(const CacheAligned&) const { return false; }
  static constexpr size_t kLine = 64;
};
static_assert(alignof(std::max_align_t) >= sizeof(void*), "there is room for a pointer before the first line");
template <class T>
using Aligned = std::vector<T, CacheAligned<T>>;
using Matrix = Aligned<double>;

inline int padded(int columns) { return (columns + kLane - 1) / kLane * kLane; }

struct Kernels {
  // out[i, k] = scale * sum_c (x[i, c] - ft[c, k])². The differences are squared directly, to avoid cancellation.
  void (*squared_distances)(int n, int ld, int d, double scale, const double* x, const double* ft, double* out);

  // max |cost[i, k]| over the first `cols` columns
  double (*largest_magnitude)(int n, int cols, int ld, const double* cost);

  // For each column k, the smallest reduced cost, cost[i, k] - u[i] - v[k], over rows in [first, last), and its row; if
  // no cost[i, k] - u[i] is below v[k] - eps, 0 and row 0.
  void (*price)(int first, int last, int ld, const double* cost, const double* u, const double* v, double eps,
                double* reduced, int64_t* row);

  // out = cost minus the mean of each column. Padding columns, and what is not a number below kPadCost in absolute value,
  // become kPadCost.
  void (*centre)(int n, int cols, int ld, const double* cost, double* out);

  // The column k of the smallest cost[k] + extra[k], the first if several are equal; over `ld` columns
  int (*cheapest)(int ld, const double* cost, const double* extra);

  // Second smallest minus smallest of `ld` costs
  double (*regret)(int ld, const double* cost);

  // out = base + sum over s < count of a[s] * in[s], over `size` entries (a multiple of kLane); count is at least 1
  void (*combine)(int64_t size, int count, const double* a, const double* const* in, const double* base, double* out);

  // out /= divisor, and then sum += a * out, over `size` entries (a multiple of kLane)
  void (*divide_and_add)(int64_t size, double divisor, double a, double* out, double* sum);

  // y += a * x, for any count
  void (*axpy)(int64_t count, double a, const double* x, double* y);

  // out[to[e], :] += a * value[e] * in[from[e], :] for each e in turn; rows of `width` entries, for any width
  void (*add_rows)(int64_t width, int count, double a, const double* value, const int32_t* from, const int32_t* to,
                   const double* in, double* out);

  // out[i, :] = sum over entries (i, k) of a plan of mass * table[k, :]
  void (*plan_times)(int n, int ld, int count, const int32_t* row, const int32_t* col, const double* mass,
                     const double* table, double* out);

  // out[i, :] = sum over edges (i, j) of value * y[j, :]
  void (*csr_times)(int n, int ld, const int64_t* ptr, const int32_t* col, const double* value, const double* y,
                    double* out);

  // out[i, :] = sum over k < inner of a[i * row_step + k * col_step] * table[k, :]
  void (*dense_times)(int n, int inner, int ld, const double* a, int64_t row_step, int64_t col_step,
                      const double* table, double* out);

  // For path masks (mask_tree.hpp) stored as `words` blocks of `count` words: every node whose mask has the bit `slot`
  // gets mask ^= change and potential += shift.
  void (*move_subtree)(int words, int count, int slot, const uint64_t* change, double shift, uint64_t* mask,
                       double* potential);

  // Number of bits in each node's mask
  void (*path_lengths)(int words, int count, const uint64_t* mask, int32_t* length);

  // y[i, j] = sum_c x[i, c] * weight[j, c] + bias[j], without bias where it is null. Every sum is computed in the same
  // order, wherever its row is. In double and in single precision.
  void (*linear)(int64_t rows, int64_t in, int64_t out, const double* x, const double* weight, const double* bias,
                 double* y);
  void (*linear_single)(int64_t rows, int64_t in, int64_t out, const float* x, const float* weight, const float* bias,
                        float* y);

  // x[i, c] = x[i, c] * factor[c] + shift[c]
  void (*scale_columns)(int64_t rows, int64_t columns, const double* factor, const double* shift, double* x);
  void (*scale_columns_single)(int64_t rows, int64_t columns, const float* factor, const float* shift, float* x);
};

const Kernels& kernels();

}  // namespace tfgw

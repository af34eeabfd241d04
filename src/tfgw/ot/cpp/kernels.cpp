#include "kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tfgw {
namespace {

typedef double Vec __attribute__((vector_size(kLane * sizeof(double))));
typedef int64_t Mask __attribute__((vector_size(kLane * sizeof(int64_t))));

#define TFGW_BODY static inline __attribute__((always_inline)) void

inline __attribute__((always_inline)) void load(const void* p, Vec& v) { std::memcpy(&v, p, sizeof v); }
inline __attribute__((always_inline)) void load(const void* p, Mask& v) { std::memcpy(&v, p, sizeof v); }

template <class T>
inline __attribute__((always_inline)) void store(void* p, const T& v) {
  std::memcpy(p, &v, sizeof v);
}

TFGW_BODY squared_distances_body(int n, int ld, int d, const double* x, const double* ft, double* out) {
  for (int i = 0; i < n; ++i) {
    const double* xi = x + int64_t(i) * d;
    for (int k = 0; k < ld; k += 2 * kLane) {
      const bool two = k + kLane < ld;
      Vec s0 = {}, s1 = {};
      for (int c = 0; c < d; ++c) {
        const double* row = ft + int64_t(c) * ld + k;
        Vec f0, f1;
        load(row, f0);
        load(two ? row + kLane : row, f1);
        const Vec d0 = xi[c] - f0, d1 = xi[c] - f1;
        s0 += d0 * d0;
        s1 += d1 * d1;
      }
      store(out + int64_t(i) * ld + k, s0);
      if (two) store(out + int64_t(i) * ld + k + kLane, s1);
    }
  }
}

static inline __attribute__((always_inline)) double largest_magnitude_body(int n, int cols, int ld,
                                                                           const double* cost) {
  Vec top = {};
  double tail = 0;
  for (int i = 0; i < n; ++i) {
    const double* row = cost + int64_t(i) * ld;
    int k = 0;
    for (; k + kLane <= cols; k += kLane) {
      Vec c;
      load(row + k, c);
      c = c < 0 ? -c : c;
      top = c > top ? c : top;
    }
    for (; k < cols; ++k) tail = std::max(tail, std::abs(row[k]));
  }
  for (int e = 0; e < kLane; ++e) tail = std::max(tail, top[e]);
  return tail;
}

TFGW_BODY price_body(int first, int last, int ld, const double* cost, const double* u, const double* v, double eps,
                     double* best, int64_t* row) {
  for (int k = 0; k < ld; k += kLane) {
    Vec threshold;
    load(v + k, threshold);
    threshold -= eps;
    Mask index = {-1, -1, -1, -1};
    for (int i = first; i < last; ++i) {
      Vec c;
      load(cost + int64_t(i) * ld + k, c);
      c -= u[i];
      const Mask less = c < threshold;
      threshold = less ? c : threshold;
      const Mask here = {i, i, i, i};
      index = less ? here : index;
    }
    store(best + k, threshold);
    store(row + k, index);
  }
}

TFGW_BODY add_scaled_body(int64_t size, double a, const double* in, double* out) {
  for (int64_t e = 0; e < size; e += kLane) {
    Vec x, y;
    load(in + e, x);
    load(out + e, y);
    store(out + e, y + a * x);
  }
}

TFGW_BODY csr_times_body(int n, int ld, const int64_t* ptr, const int32_t* col, const double* value, const double* y,
                         double* out) {
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < ld; k += kLane) {
      Vec s = {};
      for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e) {
        Vec t;
        load(y + int64_t(col[e]) * ld + k, t);
        s += value[e] * t;
      }
      store(out + int64_t(i) * ld + k, s);
    }
  }
}

TFGW_BODY gather_rows_body(int count, int ld, const int32_t* row, const int32_t* col, const double* w,
                           const double* table, double* out) {
  for (int e = 0; e < count; ++e) {
    const double* from = table + int64_t(col[e]) * ld;
    double* to = out + int64_t(row[e]) * ld;
    for (int k = 0; k < ld; k += kLane) {
      Vec x, y;
      load(from + k, x);
      load(to + k, y);
      store(to + k, y + w[e] * x);
    }
  }
}

TFGW_BODY dense_times_body(int n, int inner, int ld, const double* a, int64_t row_step, int64_t col_step,
                           const double* table, double* out) {
  for (int i = 0; i < n; ++i) {
    for (int l = 0; l < ld; l += 2 * kLane) {
      const bool two = l + kLane < ld;
      Vec s0 = {}, s1 = {};
      for (int k = 0; k < inner; ++k) {
        const double w = a[i * row_step + k * col_step];
        const double* row = table + int64_t(k) * ld + l;
        Vec t0, t1;
        load(row, t0);
        load(two ? row + kLane : row, t1);
        s0 += w * t0;
        s1 += w * t1;
      }
      store(out + int64_t(i) * ld + l, s0);
      if (two) store(out + int64_t(i) * ld + l + kLane, s1);
    }
  }
}

// One copy of each loop per instruction set; the bodies above are inlined into both.
#define TFGW_VARIANT(NAME, TARGET)                                                                              \
  namespace NAME {                                                                                              \
  TARGET void squared_distances(int n, int ld, int d, const double* x, const double* ft, double* out) {         \
    squared_distances_body(n, ld, d, x, ft, out);                                                               \
  }                                                                                                             \
  TARGET double largest_magnitude(int n, int cols, int ld, const double* cost) {                                \
    return largest_magnitude_body(n, cols, ld, cost);                                                           \
  }                                                                                                             \
  TARGET void price(int first, int last, int ld, const double* cost, const double* u, const double* v,          \
                    double eps, double* best, int64_t* row) {                                                   \
    price_body(first, last, ld, cost, u, v, eps, best, row);                                                    \
  }                                                                                                             \
  TARGET void add_scaled(int64_t size, double a, const double* in, double* out) {                               \
    add_scaled_body(size, a, in, out);                                                                          \
  }                                                                                                             \
  TARGET void csr_times(int n, int ld, const int64_t* ptr, const int32_t* col, const double* value,             \
                        const double* y, double* out) {                                                         \
    csr_times_body(n, ld, ptr, col, value, y, out);                                                             \
  }                                                                                                             \
  TARGET void gather_rows(int count, int ld, const int32_t* row, const int32_t* col, const double* w,           \
                          const double* table, double* out) {                                                   \
    gather_rows_body(count, ld, row, col, w, table, out);                                                       \
  }                                                                                                             \
  TARGET void dense_times(int n, int inner, int ld, const double* a, int64_t row_step, int64_t col_step,        \
                          const double* table, double* out) {                                                   \
    dense_times_body(n, inner, ld, a, row_step, col_step, table, out);                                          \
  }                                                                                                             \
  constexpr Kernels table = {squared_distances, largest_magnitude, price,      add_scaled,                      \
                             csr_times,         gather_rows,       dense_times};                                \
  }

TFGW_VARIANT(baseline, )
#if defined(__x86_64__)
TFGW_VARIANT(avx2, __attribute__((target("avx2,fma"))))
#endif

const Kernels& choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::table;
#endif
  return baseline::table;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace tfgw

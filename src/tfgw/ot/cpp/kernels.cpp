#include "kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tfgw {
namespace {

typedef double Vec __attribute__((vector_size(kLane * sizeof(double))));
typedef int64_t Mask __attribute__((vector_size(kLane * sizeof(int64_t))));
// The same in memory, with the alignment of a single element.
typedef double VecInMemory __attribute__((vector_size(kLane * sizeof(double)), aligned(8), may_alias));
typedef int64_t MaskInMemory __attribute__((vector_size(kLane * sizeof(int64_t)), aligned(8), may_alias));

#define TFGW_INLINE static inline __attribute__((always_inline))
#define TFGW_UNROLL _Pragma("GCC unroll 8")  // so that arrays of V vectors live in registers

TFGW_INLINE Vec load(const double* p) { return *reinterpret_cast<const VecInMemory*>(p); }
TFGW_INLINE void store(double* p, Vec v) { *reinterpret_cast<VecInMemory*>(p) = v; }
TFGW_INLINE Mask load(const uint64_t* p) { return *reinterpret_cast<const MaskInMemory*>(p); }
TFGW_INLINE void store(uint64_t* p, Mask v) { *reinterpret_cast<MaskInMemory*>(p) = v; }
TFGW_INLINE void store(int64_t* p, Mask v) { *reinterpret_cast<MaskInMemory*>(p) = v; }

TFGW_INLINE Vec magnitudes(Vec v) {
  return reinterpret_cast<Vec>(reinterpret_cast<Mask>(v) & std::numeric_limits<int64_t>::max());
}

// The loops run over strips of at most W vectors of columns, so that the sums stay in registers. Strip<V>::run
// processes one strip of V vectors from column k on.
template <int W, template <int> class Strip, class Int, class... Args>
TFGW_INLINE void for_each_strip(Int ld, const Args&... args) {
  Int k = 0;
  for (; k + W * kLane <= ld; k += W * kLane) Strip<W>::run(k, ld, args...);
  switch ((ld - k) / kLane) {
    case 1: Strip<1>::run(k, ld, args...); break;
    case 2: Strip<2>::run(k, ld, args...); break;
    case 3: Strip<3>::run(k, ld, args...); break;
    case 4: Strip<4>::run(k, ld, args...); break;
    case 5: Strip<5>::run(k, ld, args...); break;
    case 6: Strip<6>::run(k, ld, args...); break;
    case 7: Strip<7>::run(k, ld, args...); break;
    default: break;
  }
}

template <int V>
struct SquaredDistances {
  TFGW_INLINE void run(int k, int ld, int n, int d, double scale, const double* x, const double* ft, double* out) {
    for (int i = 0; i < n; ++i) {
      Vec sum[V];
      TFGW_UNROLL
      for (int v = 0; v < V; ++v) sum[v] = Vec{};
      for (int c = 0; c < d; ++c) {
        const double value = x[int64_t(i) * d + c];
        TFGW_UNROLL
        for (int v = 0; v < V; ++v) {
          const Vec diff = value - load(ft + int64_t(c) * ld + k + v * kLane);
          sum[v] += diff * diff;
        }
      }
      TFGW_UNROLL
      for (int v = 0; v < V; ++v) store(out + int64_t(i) * ld + k + v * kLane, scale * sum[v]);
    }
  }
};

// Finds the largest u - cost instead of the smallest cost - u, because only a subtrahend can stay in memory.
template <int V>
struct Price {
  TFGW_INLINE void run(int k, int ld, int first, int last, const double* cost, const double* u, const double* v,
                       double eps, double* reduced, int64_t* row) {
    Vec highest[V];
    Mask index[V];
    TFGW_UNROLL
    for (int s = 0; s < V; ++s) {
      highest[s] = eps - load(v + k + s * kLane);
      index[s] = Mask{};
    }
    Mask here = Mask{} + first;
    for (int i = first; i < last; ++i, ++here)
      TFGW_UNROLL
      for (int s = 0; s < V; ++s) {
        const Vec c = u[i] - load(cost + int64_t(i) * ld + k + s * kLane);
        const Mask more = c > highest[s];
        highest[s] = more ? c : highest[s];
        index[s] = more ? here : index[s];
      }
    TFGW_UNROLL
    for (int s = 0; s < V; ++s) {
      const Vec potential = load(v + k + s * kLane);
      store(reduced + k + s * kLane, highest[s] > eps - potential ? -highest[s] - potential : Vec{});
      store(row + k + s * kLane, index[s]);
    }
  }
};

template <int V>
struct CsrTimes {
  TFGW_INLINE void run(int k, int ld, int n, const int64_t* ptr, const int32_t* col, const double* value,
                       const double* y, double* out) {
    for (int i = 0; i < n; ++i) {
      Vec sum[V];
      TFGW_UNROLL
      for (int v = 0; v < V; ++v) sum[v] = Vec{};
      for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e)
        TFGW_UNROLL
        for (int v = 0; v < V; ++v) sum[v] += value[e] * load(y + int64_t(col[e]) * ld + k + v * kLane);
      TFGW_UNROLL
      for (int v = 0; v < V; ++v) store(out + int64_t(i) * ld + k + v * kLane, sum[v]);
    }
  }
};

template <int V>
struct DenseTimes {
  TFGW_INLINE void run(int k, int ld, int n, int inner, const double* a, int64_t row_step, int64_t col_step,
                       const double* table, double* out) {
    for (int i = 0; i < n; ++i) {
      Vec sum[V];
      TFGW_UNROLL
      for (int v = 0; v < V; ++v) sum[v] = Vec{};
      for (int l = 0; l < inner; ++l) {
        const double w = a[i * row_step + l * col_step];
        TFGW_UNROLL
        for (int v = 0; v < V; ++v) sum[v] += w * load(table + int64_t(l) * ld + k + v * kLane);
      }
      TFGW_UNROLL
      for (int v = 0; v < V; ++v) store(out + int64_t(i) * ld + k + v * kLane, sum[v]);
    }
  }
};

TFGW_INLINE void move_subtree_body(int words, int count, int slot, const uint64_t* change, double shift,
                                   uint64_t* mask, double* potential) {
  const uint64_t* tested = mask + int64_t(slot / 64) * count;
  const int64_t bit = int64_t(uint64_t(1) << (slot % 64));
  const Mask bits = {bit, bit, bit, bit};
  const Vec shifts = {shift, shift, shift, shift};
  for (int e = 0; e < count; e += kLane) {
    const Mask inside = (load(tested + e) & bits) == bits;
    for (int w = 0; w < words; ++w) {
      uint64_t* at = mask + int64_t(w) * count + e;
      store(at, load(at) ^ (inside & int64_t(change[w])));
    }
    store(potential + e, load(potential + e) + reinterpret_cast<Vec>(inside & reinterpret_cast<Mask>(shifts)));
  }
}

TFGW_INLINE void path_lengths_body(int words, int count, const uint64_t* mask, int32_t* length) {
  for (int e = 0; e < count; ++e) length[e] = __builtin_popcountll(mask[e]);
  for (int w = 1; w < words; ++w)
    for (int e = 0; e < count; ++e) length[e] += __builtin_popcountll(mask[int64_t(w) * count + e]);
}

template <int V>
struct Combine {
  TFGW_INLINE void run(int64_t k, int64_t, int count, const double* a, const double* const* in, const double* base,
                       double* out) {
    Vec sum[V];
    TFGW_UNROLL
    for (int v = 0; v < V; ++v) sum[v] = load(base + k + v * kLane) + a[0] * load(in[0] + k + v * kLane);
    for (int s = 1; s < count; ++s)
      TFGW_UNROLL
      for (int v = 0; v < V; ++v) sum[v] += a[s] * load(in[s] + k + v * kLane);
    TFGW_UNROLL
    for (int v = 0; v < V; ++v) store(out + k + v * kLane, sum[v]);
  }
};

TFGW_INLINE void divide_and_add_body(int64_t size, double divisor, double a, double* out, double* sum) {
  for (int64_t e = 0; e < size; e += kLane) {
    const Vec quotient = load(out + e) / divisor;
    store(out + e, quotient);
    store(sum + e, load(sum + e) + a * quotient);
  }
}

TFGW_INLINE void axpy_body(int64_t count, double a, const double* x, double* y) {
  int64_t e = 0;
  for (; e + kLane <= count; e += kLane) store(y + e, load(y + e) + a * load(x + e));
  for (; e < count; ++e) y[e] += a * x[e];
}

template <int V>
struct AddRows {
  TFGW_INLINE void run(int64_t k, int64_t, int64_t width, int count, double a, const double* value,
                       const int32_t* from, const int32_t* to, const double* in, double* out) {
    for (int e = 0; e < count; ++e) {
      const double w = a * value[e];
      const double* x = in + from[e] * width + k;
      double* y = out + to[e] * width + k;
      Vec sum[V];
      TFGW_UNROLL
      for (int v = 0; v < V; ++v) sum[v] = load(y + v * kLane);
      TFGW_UNROLL
      for (int v = 0; v < V; ++v) sum[v] += w * load(x + v * kLane);
      TFGW_UNROLL
      for (int v = 0; v < V; ++v) store(y + v * kLane, sum[v]);
    }
  }
};

template <int V>
struct PlanTimes {
  TFGW_INLINE void run(int k, int ld, int n, int count, const int32_t* row, const int32_t* col, const double* mass,
                       const double* table, double* out) {
    for (int i = 0; i < n; ++i)
      TFGW_UNROLL
      for (int v = 0; v < V; ++v) store(out + int64_t(i) * ld + k + v * kLane, Vec{});
    AddRows<V>::run(k, ld, ld, count, 1.0, mass, col, row, table, out);
  }
};

TFGW_INLINE void add_rows_body(int64_t width, int count, double a, const double* value, const int32_t* from,
                               const int32_t* to, const double* in, double* out) {
  const int64_t whole = width / kLane * kLane;
  for_each_strip<8, AddRows>(whole, width, count, a, value, from, to, in, out);
  for (int e = 0; e < count && whole < width; ++e)
    for (int64_t k = whole; k < width; ++k) out[to[e] * width + k] += a * value[e] * in[from[e] * width + k];
}

TFGW_INLINE double largest_magnitude_body(int n, int cols, int ld, const double* cost) {
  Vec top = {};
  double tail = 0;
  for (int i = 0; i < n; ++i) {
    const double* row = cost + int64_t(i) * ld;
    int k = 0;
    for (; k + kLane <= cols; k += kLane) {
      const Vec c = magnitudes(load(row + k));
      top = c > top ? c : top;
    }
    for (; k < cols; ++k) tail = std::max(tail, std::abs(row[k]));
  }
  for (int e = 0; e < kLane; ++e) tail = std::max(tail, top[e]);
  return tail;
}

TFGW_INLINE int cheapest_body(int ld, const double* cost, const double* extra) {
  Mask here = {0, 1, 2, 3}, index = here;
  Vec lowest = load(cost) + load(extra);
  for (int k = kLane; k < ld; k += kLane) {
    here += kLane;
    const Vec c = load(cost + k) + load(extra + k);
    const Mask less = c < lowest;
    lowest = less ? c : lowest;
    index = less ? here : index;
  }
  double least = lowest[0];
  int64_t best = index[0];
  for (int e = 1; e < kLane; ++e) {
    const bool better = (lowest[e] < least) | ((lowest[e] == least) & (index[e] < best));
    least = better ? lowest[e] : least;
    best = better ? index[e] : best;
  }
  return int(best);
}

// The costs minus their column means: a cost that all rows pay does not affect the plan.
template <int V>
struct Centre {
  TFGW_INLINE void run(int k, int ld, int n, int cols, const double* cost, double* out) {
    Vec mean[V];
    TFGW_UNROLL
    for (int v = 0; v < V; ++v) mean[v] = Vec{};
    for (int i = 0; i < n; ++i)
      TFGW_UNROLL
      for (int v = 0; v < V; ++v) mean[v] += load(cost + int64_t(i) * ld + k + v * kLane) / double(n);
    TFGW_UNROLL
    for (int v = 0; v < V; ++v) {
      const Mask first = {0, 1, 2, 3};
      mean[v] = first + (k + v * kLane) < cols ? mean[v] : Vec{};
    }
    for (int i = 0; i < n; ++i)
      TFGW_UNROLL
      for (int v = 0; v < V; ++v) {
        const Vec c = load(cost + int64_t(i) * ld + k + v * kLane) - mean[v];
        store(out + int64_t(i) * ld + k + v * kLane, magnitudes(c) < kPadCost ? c : Vec{} + kPadCost);
      }
  }
};

TFGW_INLINE double regret_body(int ld, const double* cost) {
  Vec first = load(cost), second = Vec{} + std::numeric_limits<double>::infinity();
  for (int k = kLane; k < ld; k += kLane) {
    const Vec c = load(cost + k);
    const Vec larger = first > c ? first : c;
    second = second < larger ? second : larger;
    first = first < c ? first : c;
  }
  double least = first[0], next = second[0];
  for (int e = 1; e < kLane; ++e) {
    next = std::min(std::min(next, second[e]), std::max(least, first[e]));
    least = std::min(least, first[e]);
  }
  return next - least;
}

// The dot products of R rows of x with J rows of the weights, over `in` columns: by lanes, then the lanes, then the
// remaining columns, then the bias.
template <int R, int J, class T>
TFGW_INLINE void dot_products(int64_t in, int64_t out, const T* x, const T* weight, const T* bias, T* y) {
  constexpr int kLanes = 32 / sizeof(T);
  typedef T Lanes __attribute__((vector_size(32)));
  typedef T InMemory __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));
  Lanes sum[R][J] = {};
  int64_t c = 0;
  for (; c + kLanes <= in; c += kLanes) {
    TFGW_UNROLL
    for (int j = 0; j < J; ++j) {
      const Lanes w = *reinterpret_cast<const InMemory*>(weight + j * in + c);
      TFGW_UNROLL
      for (int r = 0; r < R; ++r) sum[r][j] += *reinterpret_cast<const InMemory*>(x + r * in + c) * w;
    }
  }
  TFGW_UNROLL
  for (int r = 0; r < R; ++r) {
    TFGW_UNROLL
    for (int j = 0; j < J; ++j) {
      Lanes lanes = sum[r][j];
      TFGW_UNROLL
      for (int half = kLanes / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
      T total = lanes[0];
      for (int64_t rest = c; rest < in; ++rest) total += x[r * in + rest] * weight[j * in + rest];
      y[r * out + j] = bias ? total + bias[j] : total;
    }
  }
}

template <class T>
TFGW_INLINE void linear_body(int64_t rows, int64_t in, int64_t out, const T* x, const T* weight, const T* bias, T* y) {
  constexpr int kRows = 2, kOutputs = 4;  // their sums stay in registers
  int64_t j = 0;
  for (; j + kOutputs <= out; j += kOutputs) {
    const T *w = weight + j * in, *b = bias ? bias + j : nullptr;
    int64_t i = 0;
    for (; i + kRows <= rows; i += kRows) dot_products<kRows, kOutputs>(in, out, x + i * in, w, b, y + i * out + j);
    for (; i < rows; ++i) dot_products<1, kOutputs>(in, out, x + i * in, w, b, y + i * out + j);
  }
  for (; j < out; ++j)
    for (int64_t i = 0; i < rows; ++i)
      dot_products<1, 1>(in, out, x + i * in, weight + j * in, bias ? bias + j : nullptr, y + i * out + j);
}

template <class T>
TFGW_INLINE void scale_columns_body(int64_t rows, int64_t columns, const T* factor, const T* shift, T* x) {
  for (int64_t i = 0; i < rows; ++i, x += columns)
    for (int64_t c = 0; c < columns; ++c) x[c] = x[c] * factor[c] + shift[c];
}

// One copy of each loop per instruction set; everything above is inlined into both.
#define TFGW_VARIANT(NAME, TARGET)                                                                              \
  namespace NAME {                                                                                              \
  TARGET void squared_distances(int n, int ld, int d, double scale, const double* x, const double* ft,          \
                                double* out) {                                                                  \
    for_each_strip<8, SquaredDistances>(ld, n, d, scale, x, ft, out);                                           \
  }                                                                                                             \
  TARGET double largest_magnitude(int n, int cols, int ld, const double* cost) {                                \
    return largest_magnitude_body(n, cols, ld, cost);                                                           \
  }                                                                                                             \
  TARGET void price(int first, int last, int ld, const double* cost, const double* u, const double* v,          \
                    double eps, double* reduced, int64_t* row) {                                                \
    for_each_strip<5, Price>(ld, first, last, cost, u, v, eps, reduced, row);                                   \
  }                                                                                                             \
  TARGET void centre(int n, int cols, int ld, const double* cost, double* out) {                                \
    for_each_strip<5, Centre>(ld, n, cols, cost, out);                                                          \
  }                                                                                                             \
  TARGET int cheapest(int ld, const double* cost, const double* extra) { return cheapest_body(ld, cost, extra); }\
  TARGET double regret(int ld, const double* cost) { return regret_body(ld, cost); }                            \
  TARGET void combine(int64_t size, int count, const double* a, const double* const* in, const double* base,    \
                      double* out) {                                                                            \
    for_each_strip<8, Combine>(size, count, a, in, base, out);                                                  \
  }                                                                                                             \
  TARGET void divide_and_add(int64_t size, double divisor, double a, double* out, double* sum) {                \
    divide_and_add_body(size, divisor, a, out, sum);                                                            \
  }                                                                                                             \
  TARGET void axpy(int64_t count, double a, const double* x, double* y) { axpy_body(count, a, x, y); }          \
  TARGET void add_rows(int64_t width, int count, double a, const double* value, const int32_t* from,            \
                       const int32_t* to, const double* in, double* out) {                                      \
    add_rows_body(width, count, a, value, from, to, in, out);                                                   \
  }                                                                                                             \
  TARGET void plan_times(int n, int ld, int count, const int32_t* row, const int32_t* col, const double* mass,  \
                         const double* table, double* out) {                                                    \
    for_each_strip<8, PlanTimes>(ld, n, count, row, col, mass, table, out);                                     \
  }                                                                                                             \
  TARGET void csr_times(int n, int ld, const int64_t* ptr, const int32_t* col, const double* value,             \
                        const double* y, double* out) {                                                         \
    for_each_strip<8, CsrTimes>(ld, n, ptr, col, value, y, out);                                                \
  }                                                                                                             \
  TARGET void dense_times(int n, int inner, int ld, const double* a, int64_t row_step, int64_t col_step,        \
                          const double* table, double* out) {                                                   \
    for_each_strip<8, DenseTimes>(ld, n, inner, a, row_step, col_step, table, out);                             \
  }                                                                                                             \
  TARGET void move_subtree(int words, int count, int slot, const uint64_t* change, double shift,                \
                           uint64_t* mask, double* potential) {                                                 \
    if (words == 1) return move_subtree_body(1, count, slot, change, shift, mask, potential);                   \
    move_subtree_body(words, count, slot, change, shift, mask, potential);                                      \
  }                                                                                                             \
  TARGET void path_lengths(int words, int count, const uint64_t* mask, int32_t* length) {                       \
    path_lengths_body(words, count, mask, length);                                                              \
  }                                                                                                             \
  TARGET void linear(int64_t rows, int64_t in, int64_t out, const double* x, const double* weight,              \
                     const double* bias, double* y) {                                                           \
    linear_body(rows, in, out, x, weight, bias, y);                                                             \
  }                                                                                                             \
  TARGET void linear_single(int64_t rows, int64_t in, int64_t out, const float* x, const float* weight,         \
                            const float* bias, float* y) {                                                      \
    linear_body(rows, in, out, x, weight, bias, y);                                                             \
  }                                                                                                             \
  TARGET void scale_columns(int64_t rows, int64_t columns, const double* factor, const double* shift,           \
                            double* x) {                                                                        \
    scale_columns_body(rows, columns, factor, shift, x);                                                        \
  }                                                                                                             \
  TARGET void scale_columns_single(int64_t rows, int64_t columns, const float* factor, const float* shift,      \
                                   float* x) {                                                                  \
    scale_columns_body(rows, columns, factor, shift, x);                                                        \
  }                                                                                                             \
  constexpr Kernels table = {squared_distances, largest_magnitude, price,          centre, cheapest,            \
                             regret,            combine,           divide_and_add, axpy,   add_rows,            \
                             plan_times,        csr_times,         dense_times,    move_subtree,                \
                             path_lengths,      linear,            linear_single,  scale_columns,               \
                             scale_columns_single};                                                             \
  }

TFGW_VARIANT(baseline, )
#if defined(__x86_64__)
TFGW_VARIANT(avx2, __attribute__((target("avx2,fma"))))
#endif

#if defined(__x86_64__)
// The compilers' own __builtin_cpu_supports does not link on Windows.
bool has_avx2_and_fma() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX) || !(c & bit_FMA)) return false;
  unsigned enabled, high;
  asm("xgetbv" : "=a"(enabled), "=d"(high) : "c"(0));
  constexpr unsigned kVectorState = 6;  // the system saves the registers of SSE and of AVX
  return (enabled & kVectorState) == kVectorState && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}
#endif

const Kernels& choose() {
#if defined(__x86_64__)
  if (has_avx2_and_fma()) return avx2::table;
#endif
  return baseline::table;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace tfgw

// Warp intrinsics under portable names. All other code uses these functions only, so the same source runs on a GPU and,
// lane by lane, in the tests' emulation on a CPU.
#pragma once

#include "rules.cuh"
#include "structs.cuh"

#ifdef __CUDACC__

#define TFGW_DEVICE __device__ __forceinline__
#define TFGW_NOINLINE __device__ __noinline__
#define TFGW_SHARED __shared__
#define TFGW_GRID_CONSTANT __grid_constant__  // read in place, not copied to each thread
#define TFGW_KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)

namespace tfgw {

constexpr u32 kAllLanes = ~0u;

TFGW_DEVICE char* dynamic_shared_memory() {  // shared memory whose size is given at launch
  extern __shared__ double2 memory[];
  return reinterpret_cast<char*>(memory);
}
TFGW_DEVICE int lane() { return int(threadIdx.x) & 31; }
TFGW_DEVICE int thread_in_block() { return int(threadIdx.x); }
TFGW_DEVICE int threads_in_block() { return int(blockDim.x); }
TFGW_DEVICE int block_index() { return int(blockIdx.x); }
TFGW_DEVICE int blocks_in_grid() { return int(gridDim.x); }
TFGW_DEVICE void sync_warp() { __syncwarp(); }
TFGW_DEVICE void sync_block() { __syncthreads(); }
TFGW_DEVICE bool any_in_block(bool p) { return __syncthreads_or(p) != 0; }
TFGW_DEVICE u32 ballot(bool p) { return __ballot_sync(kAllLanes, p); }
TFGW_DEVICE u32 warp_min(u32 v) { return __reduce_min_sync(kAllLanes, v); }
TFGW_DEVICE u32 warp_max(u32 v) { return __reduce_max_sync(kAllLanes, v); }
template <class T>
TFGW_DEVICE T shfl(T v, int source) {
  return __shfl_sync(kAllLanes, v, source);
}
template <class T>
TFGW_DEVICE T shfl_xor(T v, int distance) {
  return __shfl_xor_sync(kAllLanes, v, distance);
}
TFGW_DEVICE int popc(u32 v) { return __popc(v); }
TFGW_DEVICE int lowest_bit(u32 v) { return __ffs(int(v)) - 1; }
TFGW_DEVICE u64 bits_of(double v) { return u64(__double_as_longlong(v)); }
TFGW_DEVICE double double_of(u64 b) { return __longlong_as_double(i64(b)); }
// a b + c, rounded once. In a b + c d, the compiler may contract either product, and not the same one in every kernel.
TFGW_DEVICE double fma_rn(double a, double b, double c) { return __fma_rn(a, b, c); }
// Loads data that no thread writes while the kernel runs. The compiler may move the load up.
template <class T>
TFGW_DEVICE T read_only(const T* at) {
  return __ldg(at);
}
// c += a b, the product of 8 × 4 and 4 × 8 numbers. Lane l has a[l / 4][l % 4], b[l % 4][l / 4], and of c the row l / 4
// with the columns 2 (l % 4) and 2 (l % 4) + 1.
TFGW_DEVICE void multiply_add(double (&c)[2], double a, double b) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(c[0]), "+d"(c[1])
               : "d"(a), "d"(b));
}
// The same for 16 rows of a and c: index 1 is 8 rows below.
TFGW_DEVICE void multiply_add(double (&c)[2][2], const double (&a)[2], double b) {
#if __CUDA_ARCH__ >= 900  // takes half the time
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+d"(c[0][0]), "+d"(c[0][1]), "+d"(c[1][0]), "+d"(c[1][1])
               : "d"(a[0]), "d"(a[1]), "d"(b));
#else
  for (int s = 0; s < 2; ++s) multiply_add(c[s], a[s], b);
#endif
}
// Asynchronous copy of 4, 8 or 16 bytes from global to shared memory, complete after `wait_for_copies`.
template <class T>
TFGW_DEVICE void copy_async(T* shared, const T* global) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
               :
               : "r"(u32(__cvta_generic_to_shared(shared))), "l"(global), "n"(int(sizeof(T)))
               : "memory");
}
TFGW_DEVICE void wait_for_copies() { asm volatile("cp.async.wait_all;" : : : "memory"); }
TFGW_DEVICE int atomic_add(int* at, int v) { return atomicAdd(at, v); }
TFGW_DEVICE void atomic_max(int* at, int v) { atomicMax(at, v); }
TFGW_DEVICE void atomic_min(int* at, int v) { atomicMin(at, v); }
TFGW_DEVICE void atomic_or(u32* at, u32 v) { atomicOr(at, v); }
TFGW_DEVICE int atomic_exchange(int* at, int v) { return atomicExch(at, v); }
// Orders this thread's accesses to global memory, as seen by the whole GPU.
TFGW_DEVICE void fence() { __threadfence(); }
// Loads what other blocks may have written.
template <class T>
TFGW_DEVICE T read_fresh(const T* at) {
  return *static_cast<const volatile T*>(at);
}
// Returns the value. Keeps the compiler from selecting between addresses instead of values, which would put the values
// into local memory.
TFGW_DEVICE u32 in_register(u32 v) {
  asm("" : "+r"(v));
  return v;
}
TFGW_DEVICE int in_register(int v) { return int(in_register(u32(v))); }

}  // namespace tfgw

#else
#include "emulated_warp.hpp"
#endif

namespace tfgw {

// Maps doubles to unsigned integers in the same order.
TFGW_DEVICE u64 sortable(double v) {
  const u64 b = bits_of(v);
  return b >> 63 ? ~b : b | u64(1) << 63;
}

TFGW_DEVICE double from_sortable(u64 b) { return double_of(b >> 63 ? b & ~(u64(1) << 63) : ~b); }

TFGW_DEVICE u64 warp_min(u64 v) {
  const u32 high = warp_min(u32(v >> 32));
  const u32 low = warp_min(u32(v >> 32) == high ? u32(v) : ~0u);
  return u64(high) << 32 | low;
}

// A key of the upper bits of a number and its lane: the least key identifies its owner. Keys that differ only in the
// lane are tied, though their numbers may differ in the lower bits.
TFGW_DEVICE u32 with_lane(u64 v, int of = lane()) { return (u32(v >> 32) & ~u32(31)) | u32(of); }
TFGW_DEVICE bool same_but_lane(u32 a, u32 b) { return (a ^ b) < 32; }
// Among tied numbers, the lane of the least; among equal ones that of the least `rank`, which is below 512 and has the
// lane in its lower bits.
TFGW_DEVICE int lane_of_least_tied(u64 v, bool tied, u32 rank) {
  const u32 middle = tied ? u32(v >> 5) : ~0u, least = warp_min(middle);
  const u32 holders = ballot(tied && middle == least);
  if (!(holders & (holders - 1))) return lowest_bit(holders);
  return int(warp_min(tied && middle == least ? (u32(v) & 31) << 9 | rank : ~0u) & 31);
}

// The lane that holds the least value; among several, the one with the least `rank`, which must be unique. The upper
// half of the value nearly always decides.
TFGW_DEVICE int lane_of_least(u64 v, u32 rank) {
  const u32 high = warp_min(u32(v >> 32));
  u32 holders = ballot(u32(v >> 32) == high);
  if (holders & (holders - 1)) {
    const u32 low = warp_min(u32(v >> 32) == high ? u32(v) : ~0u);
    const bool least = v == (u64(high) << 32 | low);
    const u32 first = warp_min(least ? rank : ~0u);
    holders = ballot(least && rank == first);
  }
  return lowest_bit(holders);
}

// Butterfly reduction: every lane adds the same pairs and gets the same sum.
TFGW_DEVICE double warp_sum(double v) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) v += shfl_xor(v, distance);
  return v;
}

// Several sums at once, of the same pairs. In each round, two of them share a shuffle: half of the lanes continue with
// one, half with the other. At the end lane 0 has the first sum, lane 1 the second, and so on.
template <class... Doubles>
TFGW_DEVICE void warp_sums(Doubles&... v) {
  double sum[] = {v...};
  int count = sizeof...(v);
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const bool upper = lane() & distance;
#pragma unroll
    for (int s = 0; s < int(sizeof...(v)); s += 2) {
      if (s + 1 < count) {
        const double own = upper ? sum[s + 1] : sum[s], other = upper ? sum[s] : sum[s + 1];
        sum[s / 2] = own + shfl_xor(other, distance);
      } else if (s < count) {
        sum[s / 2] = sum[s] + shfl_xor(sum[s], distance);
      }
    }
    count = (count + 1) / 2;
  }
  int which = 0;
  ((v = shfl(sum[0], which++)), ...);
}

TFGW_DEVICE double warp_max(double v) { return from_sortable(~warp_min(~sortable(v))); }

// a / b, where a is often 0. A division has a slow path for numbers near 0, which then delays the whole warp.
TFGW_DEVICE double quotient(double a, double b) {
  const double found = (a == 0 ? 1.0 : a) / b;
  return a == 0 ? 0.0 : found;
}

// Inclusive scan over the warp.
template <class Int>
TFGW_DEVICE Int running_sum(Int v) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const Int before = shfl(v, (lane() - distance) & 31);
    v += lane() >= distance ? before : 0;
  }
  return v;
}

// Two doubles that are loaded or stored together.
struct alignas(16) Double2 {
  double x, y;
};
TFGW_DEVICE Double2* as_double2(double* at) { return reinterpret_cast<Double2*>(at); }
TFGW_DEVICE const Double2* as_double2(const double* at) { return reinterpret_cast<const Double2*>(at); }

}  // namespace tfgw

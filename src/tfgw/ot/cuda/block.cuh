// Loops over the threads of a block, unrolled so that many loads are in flight.
#pragma once

#include "warp.cuh"

namespace tfgw {

// visit(i, load(i)) for i = first, first + step, … before end, by one thread: kUnroll loads are issued, then visited.
// A visit must not change what is loaded.
template <int kUnroll, class Int, class Load, class Visit>
TFGW_DEVICE void unrolled(Int first, Int end, int step, Load load, Visit visit) {
#pragma unroll 1
  for (; first < end; first += kUnroll * step) {
    decltype(load(first)) value[kUnroll];
#pragma unroll
    for (int s = 0; s < kUnroll; ++s) {  // past the end, load something valid: a branch would serialise the loads
      const Int i = first + s * step;
      value[s] = load(i < end ? i : first);
    }
#pragma unroll
    for (int s = 0; s < kUnroll; ++s)
      if (first + s * step < end) visit(Int(first + s * step), value[s]);
  }
}

// visit(i) for every i < count.
template <class Int, class Visit>
TFGW_DEVICE void each(Int count, Visit visit) {
#pragma unroll 1
  for (Int i = thread_in_block(); i < count; i += threads_in_block()) visit(i);
}

// visit(i, load(i)) for every i < count.
template <class Int, class Load, class Visit>
TFGW_DEVICE void each(Int count, Load load, Visit visit) {
  unrolled<4>(Int(thread_in_block()), count, threads_in_block(), load, visit);
}

// Σ term(i) over first ≤ i < end, in order, by one thread.
template <class Term>
TFGW_DEVICE double sum_unrolled(int first, int end, Term term) {
  double sum = 0;
  unrolled<8>(first, end, 1, term, [&](int, double v) { sum += v; });
  return sum;
}

// Threads that share a row: enough to load a short row at once, few enough for many rows at a time.
constexpr int kRowThreads = 4;

// visit(i, index of this thread within row i) for every i < count, and for some i beyond, to keep warps converged.
template <class Visit>
TFGW_DEVICE void each_row(int count, Visit visit) {
#pragma unroll 1
  for (int first = 0; first < count; first += threads_in_block() / kRowThreads)
    visit(first + thread_in_block() / kRowThreads, thread_in_block() % kRowThreads);
}

// Sums over the threads of a row, the same on each of them.
template <class... Numbers>
TFGW_DEVICE void row_sums(Numbers&... v) {
#pragma unroll
  for (int distance = 1; distance < kRowThreads; distance *= 2) ((v += shfl_xor(v, distance)), ...);
}

// store(i, Σ size(j) over j < i) for every i ≤ count, by one warp.
template <class Size, class Store>
TFGW_DEVICE void running_sums(int count, Size size, Store store) {
  int before = 0;
#pragma unroll 1
  for (int first = 0; first <= count; first += 32) {
    const int i = first + lane(), mine = i < count ? size(i) : 0, end = before + running_sum(mine);
    if (i <= count) store(i, end - mine);
    before = shfl(end, 31);
  }
}

}  // namespace tfgw

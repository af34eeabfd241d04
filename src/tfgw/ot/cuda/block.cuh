// What the threads of a block do together, so that many numbers are on their way from memory at once.
#pragma once

#include "warp.cuh"

namespace tfgw {

// visit(i) for every i < count.
template <class Int, class Visit>
TFGW_DEVICE void each(Int count, Visit visit) {
#pragma unroll 1
  for (Int i = thread_in_block(); i < count; i += threads_in_block()) visit(i);
}

// visit(i, load(i)) for every i < count; what is visited does not change what is loaded.
template <class Int, class Load, class Visit>
TFGW_DEVICE void each(Int count, Load load, Visit visit) {
  constexpr int kAhead = 4;
  const int step = threads_in_block();
#pragma unroll 1
  for (Int first = thread_in_block(); first < count; first += kAhead * step) {
    decltype(load(first)) value[kAhead];
#pragma unroll
    for (int s = 0; s < kAhead; ++s)
      if (first + s * step < count) value[s] = load(first + s * step);
#pragma unroll
    for (int s = 0; s < kAhead; ++s)
      if (first + s * step < count) visit(first + s * step, value[s]);
  }
}

// Σ term(i) over first ≤ i < end, in order, by one thread.
template <class Term>
TFGW_DEVICE double sum_ahead(int first, int end, Term term) {
  constexpr int kAhead = 8;
  double sum = 0;
#pragma unroll 1
  for (; first < end; first += kAhead) {
    double value[kAhead];
#pragma unroll
    for (int s = 0; s < kAhead; ++s) {
      const double v = term(first + s < end ? first + s : end - 1);
      value[s] = first + s < end ? v : 0.0;
    }
#pragma unroll
    for (int s = 0; s < kAhead; ++s) sum += value[s];
  }
  return sum;
}

// Threads that share a row: enough to have all of a short one on its way, few enough for many rows at a time.
constexpr int kTeam = 4;

// visit(i, place of this thread in its team) for every i < count, and for some i beyond: teams of a warp stay together.
template <class Visit>
TFGW_DEVICE void each_row(int count, Visit visit) {
#pragma unroll 1
  for (int first = 0; first < count; first += threads_in_block() / kTeam)
    visit(first + thread_in_block() / kTeam, thread_in_block() % kTeam);
}

// Sums over a team, the same on each of its threads.
template <class... Numbers>
TFGW_DEVICE void team_sums(Numbers&... v) {
#pragma unroll
  for (int distance = 1; distance < kTeam; distance *= 2) ((v += across(v, distance)), ...);
}

// store(i, Σ size(j) over j < i) for every i ≤ count, by one warp.
template <class Size, class Store>
TFGW_DEVICE void running_sums(int count, Size size, Store store) {
  int before = 0;
#pragma unroll 1
  for (int first = 0; first <= count; first += 32) {
    const int i = first + lane(), mine = i < count ? size(i) : 0, end = before + running_sum(mine);
    if (i <= count) store(i, end - mine);
    before = from_lane(end, 31);
  }
}

}  // namespace tfgw

// Kernel `prepare`, one block per graph and per template: everything that depends on one side of a pair only. Checks
// every value. This file has the code shared by both sides.
#pragma once

#include "bits.cuh"
#include "block.cuh"
#include "template_order.cuh"

namespace tfgw {

template <int P>
struct PrepareMemory {
  double warp_sum[kPrepareThreads / 32];
  int sorted[P];  // of a template: nodes with weight, by weight and features, then those without
  int live[P];    // the same, and by structure
  OrderMemory<P> order;
};

// Block reduction, the same on every thread. Call it after a barrier.
template <int P>
TFGW_DEVICE double block_sum(double v, PrepareMemory<P>& memory) {
  v = warp_sum(v);
  if (lane() == 0) memory.warp_sum[thread_in_block() / 32] = v;
  sync_block();
  double total = 0;
#pragma unroll 1
  for (int w = 0; w < threads_in_block() / 32; ++w) total += memory.warp_sum[w];
  return total;
}

// The last warp often has the least work.
TFGW_DEVICE bool in_last_warp() { return thread_in_block() >= threads_in_block() - 32; }

// Whether `index` found invalid input. The whole block decides together, because another block may set the flag
// concurrently.
TFGW_DEVICE bool was_invalid(const Problem& p) { return any_in_block(p.queue[kInvalid] != 0); }

// Whether all threads of the block found valid input. Reports to the host if not.
TFGW_DEVICE bool all_valid(const Problem& p, bool valid) {
  if (!any_in_block(!valid)) return true;
  if (thread_in_block() == 0) report_invalid(p);
  return false;
}

// Σ value(i), in the same order as in the C++ core, because integers derived from the sum decide ties.
template <class Value>
TFGW_DEVICE double ordered_sum(int count, Value value) {
  double total = 0;
#pragma unroll 1
  for (int first = 0; first < count; first += 32) {
    const double mine = first + lane() < count ? value(first + lane()) : 0.0;  // adding a zero changes nothing
#pragma unroll 8
    for (int s = 0; s < 32; ++s) total += shfl(mine, s);
  }
  return total;
}

// Weights that sum to 1, and the same as integers that sum to exactly 2^60, by one warp. `least` is the smallest
// integer allowed. False if they are not weights.
template <class Weight>
TFGW_DEVICE bool fix_weights(int count, Weight weight, double tolerance, i64 least, double* h, i64* fixed) {
  bool valid = true;
#pragma unroll 4
  for (int i = lane(); i < count; i += 32) valid &= weight(i) >= 0 && weight(i) <= kLargest;
  const double total = ordered_sum(count, weight);
  if (ballot(!valid) || !sums_to_one(total, tolerance)) return false;
  const auto share = [&](int i) { return weight(i) / total; };
  const double scale = double(i64(1) << kMassBits) / ordered_sum(count, share);
  i64 sum = 0, heaviest = 0;
  int heaviest_at = 0;
#pragma unroll 1
  for (int i = lane(); i < count; i += 32) {
    const double mine = share(i);
    const i64 nearest = i64(mine * scale + 0.5), kept = nearest < least ? least : nearest;
    h[i] = mine, fixed[i] = kept;
    sum += kept;
    if (kept > heaviest) heaviest = kept, heaviest_at = i;
  }
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) sum += shfl_xor(sum, distance);
  const int owner = lane_of_least(~u64(heaviest), u32(heaviest_at));
  if (lane() == owner) fixed[heaviest_at] = heaviest + ((i64(1) << kMassBits) - sum);  // a rounding remainder
  return true;
}

// The squared norm of a row, by the threads that share it. Checks every value.
TFGW_DEVICE double squared_norm(const double* x, i64 count, int place, bool& valid) {
  double norm = 0;
  unrolled<8>(i64(place), count, kRowThreads, [&](i64 c) { return read_only(x + c); },
           [&](i64, double v) { norm += v * v, valid &= usable(v); });
  row_sums(norm);
  return norm;
}

struct Weighed {  // entries C_ij and C_ji of a matrix, and the weight of j
  double forth, back, h;
};

// Whether the values that this thread checks are usable.
TFGW_DEVICE bool all_usable(const double* values, i64 count) {
  bool valid = true;
  each(count, [&](i64 e) { return read_only(values + e); }, [&](i64, double v) { valid &= usable(v); });
  return valid;
}

}  // namespace tfgw

// Kernels `starts_begin` and `starts_product`: before the starts of a wave are solved.
#include "begin_start.cuh"

using namespace tfgw;

// The starts of a wave, and its queue.
TFGW_KERNEL(kBeginThreads, kBeginBlocks) tfgw_starts_begin(const TFGW_GRID_CONSTANT Problem p,
                                                           const TFGW_GRID_CONSTANT Starts s) {
  if (block_index() == 0) reset_queue(p.queue, s.items, s.queues + kWaveQueue * kCounters);
  if (p.queue[kInvalid]) return;
  begin_starts<TFGW_COLUMNS>(p, s);
}

// A queue for the kernel `start` to find what starts at hh̄ᵀ need, after it has found what given plans need.
TFGW_KERNEL(kBeginThreads) tfgw_starts_product(const TFGW_GRID_CONSTANT Problem p, const TFGW_GRID_CONSTANT Starts s) {
  reset_queue(p.queue, 1, s.queues + kProductQueue * kCounters);
}

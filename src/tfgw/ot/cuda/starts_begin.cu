// Kernels that prepare the starts of a wave, `starts_product`, `starts_pin`, `starts_walk` and `starts_begin`, and
// `starts_spread`, which runs after all waves.
#include "begin_start.cuh"
#include "spread.cuh"
#include "walks.cuh"

using namespace tfgw;

// The nodes that anchored starts pin.
TFGW_KERNEL(kBeginThreads) tfgw_starts_pin(const TFGW_GRID_CONSTANT Problem p, const TFGW_GRID_CONSTANT Starts s) {
  if (p.queue[kInvalid]) return;
  pin_starts<TFGW_COLUMNS>(p, s);
}

// Walks from those nodes.
TFGW_KERNEL(kWalkThreads, kWalkBlocks) tfgw_starts_walk(const TFGW_GRID_CONSTANT Problem p,
                                                        const TFGW_GRID_CONSTANT Starts s) {
  if (p.queue[kInvalid]) return;
  walk_all<TFGW_COLUMNS>(p, s);
}

// The starts of a wave, and its queue.
TFGW_KERNEL(kBeginThreads, kBeginBlocks) tfgw_starts_begin(const TFGW_GRID_CONSTANT Problem p,
                                                           const TFGW_GRID_CONSTANT Starts s) {
  if (block_index() == 0) reset_queue(p.queue, s.items, s.queues + kWaveQueue * kCounters);
  if (p.queue[kInvalid]) return;
  BeginBlock<TFGW_COLUMNS>(p, s).run();
}

// The queue for a second launch of the kernel `start`, which computes the initial state at hh̄ᵀ. The first launch has
// computed the one at the given plans.
TFGW_KERNEL(kBeginThreads) tfgw_starts_product(const TFGW_GRID_CONSTANT Problem p, const TFGW_GRID_CONSTANT Starts s) {
  reset_queue(p.queue, 1, s.queues + kProductQueue * kCounters);
}

// The spread of the values of all starts.
TFGW_KERNEL(kBeginThreads) tfgw_starts_spread(const TFGW_GRID_CONSTANT Problem p, const TFGW_GRID_CONSTANT Starts s) {
  if (p.queue[kInvalid]) return;
  write_spreads(p, s);
}

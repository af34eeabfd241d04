// Kernels `starts_pin`, `starts_walk`, `starts_begin` and `starts_product`: before the starts of a wave are solved. And
// `starts_spread`, after all waves.
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

// A queue for the kernel `start` to find what starts at hh̄ᵀ need, after it has found what given plans need.
TFGW_KERNEL(kBeginThreads) tfgw_starts_product(const TFGW_GRID_CONSTANT Problem p, const TFGW_GRID_CONSTANT Starts s) {
  reset_queue(p.queue, 1, s.queues + kProductQueue * kCounters);
}

// How far the values of all starts are apart.
TFGW_KERNEL(kBeginThreads) tfgw_starts_spread(const TFGW_GRID_CONSTANT Problem p, const TFGW_GRID_CONSTANT Starts s) {
  if (p.queue[kInvalid]) return;
  write_spreads(p, s);
}

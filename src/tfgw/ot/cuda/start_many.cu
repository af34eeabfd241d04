// Kernel `start_many`, for size classes of up to 32 columns.
#include "start.cuh"

using namespace tfgw;

// `start` with one warp per pair: slower for one pair, faster for many small ones, because no warp waits for another.
TFGW_KERNEL(32, kStartWarps * kStartBlocks) tfgw_start_many(const TFGW_GRID_CONSTANT Problem p) {
  if (p.queue[kInvalid]) return report_in_distances(p);
  start_pairs<TFGW_COLUMNS, Team<1>>(p);
}

// Kernel `start`: the initial state of each pair, four warps for each.
#include "start.cuh"

using namespace tfgw;

// A persistent kernel: as many blocks as the working memory allows.
TFGW_KERNEL(kStartThreads, kStartBlocks) tfgw_start(const TFGW_GRID_CONSTANT Problem p) {
  if (p.queue[kInvalid]) return report_in_distances(p);
  start_pairs<TFGW_COLUMNS, Team<kStartWarps>>(p);
}

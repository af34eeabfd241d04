// Kernel `solve_small`, for size classes of up to 32 columns.
#include "solve_block.cuh"

using namespace tfgw;

// `solve` for many small pairs: fewer registers, higher occupancy.
TFGW_KERNEL(kSolveThreads, kSmallBlocks) tfgw_solve_small(const TFGW_GRID_CONSTANT Problem p) {
  if (p.queue[kInvalid]) return;
  SolveBlock<TFGW_COLUMNS, kSmallSharedAtoms>(p, p.small_shared).run_small();
}

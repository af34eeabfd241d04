// Kernel `solve`: all pairs, or those not left to `solve_small`.
#include "solve_block.cuh"

using namespace tfgw;

// A persistent kernel: as many blocks as the working memory allows.
TFGW_KERNEL(kSolveThreads, kSolveBlocks) tfgw_solve(const TFGW_GRID_CONSTANT Problem p) {
  if (p.queue[kInvalid]) return;
  SolveBlock<TFGW_COLUMNS, kSharedAtoms>(p, p.shared_size).run();
}

// Kernel `starts_small`, for size classes of up to 32 columns.
#include "several_starts.cuh"

using namespace tfgw;

// `starts` for many small pairs: fewer registers, higher occupancy.
TFGW_KERNEL(kSolveThreads, kSmallBlocks) tfgw_starts_small(const TFGW_GRID_CONSTANT Problem p,
                                                           const TFGW_GRID_CONSTANT Starts s) {
  if (p.queue[kInvalid]) return;
  const SeveralStarts work(s, *reinterpret_cast<StartsBlock*>(dynamic_shared_memory() + p.shared_size));
  SolveBlock<TFGW_COLUMNS, kSmallSharedAtoms, SeveralStarts>(p, p.shared_size, work).run_small();
}

// Kernel `starts`: the starts of a wave, or those not left to `starts_small`.
#include "several_starts.cuh"

using namespace tfgw;

// A persistent kernel: as many blocks as the working memory allows.
TFGW_KERNEL(kSolveThreads, kSolveBlocks) tfgw_starts(const TFGW_GRID_CONSTANT Problem p,
                                                     const TFGW_GRID_CONSTANT Starts s) {
  if (p.queue[kInvalid]) return;
  const SeveralStarts work(s, *reinterpret_cast<StartsBlock*>(dynamic_shared_memory() + p.shared_size));
  SolveBlock<TFGW_COLUMNS, kStartsSharedAtoms, SeveralStarts>(p, p.shared_size, work).run();
}

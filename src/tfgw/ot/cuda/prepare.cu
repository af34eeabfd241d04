// Kernels `index` and `prepare`: the offsets of graphs and rows, and the data read by solves.
#include "index.cuh"
#include "prepare_graph.cuh"
#include "prepare_template.cuh"
#include "shared_entries.cuh"
#include "solve_block.cuh"

using namespace tfgw;

// Block 0 indexes the batch; one more block per template expands shared entries.
TFGW_KERNEL(kIndexThreads) tfgw_index(const TFGW_GRID_CONSTANT Problem p, const TFGW_GRID_CONSTANT SharedEntries s) {
  TFGW_SHARED IndexMemory memory;
  if (block_index() > 0) return expand_entries(s, block_index() - 1);
  Indexer(p, memory).run();
}

// One block per template, then one per graph: templates may take longer. Without the bound of two blocks per
// multiprocessor, the compiler economises on registers.
TFGW_KERNEL(kPrepareThreads, 2) tfgw_prepare(const TFGW_GRID_CONSTANT Problem p) {
  TFGW_SHARED PrepareMemory<TFGW_COLUMNS> memory;
  const int b = block_index() - int(p.templates);
  if (b < 0) {
    TemplatePreparer<TFGW_COLUMNS>(p, block_index(), memory).run();
  } else {
    GraphPreparer<TFGW_COLUMNS>(p, b, memory).run();
    if (thread_in_block() == 0) check_small_graph<TFGW_COLUMNS>(p, b);
  }
}

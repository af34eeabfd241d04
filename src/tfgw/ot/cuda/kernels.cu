// Entry points. Compiled once per size class, with TFGW_COLUMNS the number of padded template nodes.
#include "backward.cuh"
#include "index.cuh"
#include "prepare_graph.cuh"
#include "prepare_template.cuh"
#include "shared_entries.cuh"
#include "solve_block.cuh"
#include "start.cuh"

using namespace tfgw;

// Block 0 indexes the batch; one more block per template expands entries that parameters share.
TFGW_KERNEL(kIndexThreads) tfgw_index(const TFGW_GRID_CONSTANT Problem p, const TFGW_GRID_CONSTANT SharedEntries s) {
  TFGW_SHARED IndexMemory memory;
  if (block_index() > 0) return expand_entries(s, block_index() - 1);
  Indexer(p, memory).run();
}

// One block per graph, then one per template. Two blocks per multiprocessor, or the compiler saves on registers.
TFGW_KERNEL(kPrepareThreads, 2) tfgw_prepare(const TFGW_GRID_CONSTANT Problem p) {
  TFGW_SHARED PrepareMemory<TFGW_COLUMNS> memory;
  const int item = block_index();
  if (item < p.graphs) {
    GraphPreparer<TFGW_COLUMNS>(p, item, memory).run();
    if (thread_in_block() == 0) check_small_graph<TFGW_COLUMNS>(p, item);
  } else {
    TemplatePreparer<TFGW_COLUMNS>(p, item - int(p.graphs), memory).run();
  }
}

// A persistent kernel: as many blocks as the working memory has room for.
TFGW_KERNEL(kStartThreads, kStartBlocks) tfgw_start(const TFGW_GRID_CONSTANT Problem p) {
  if (p.queue[kInvalid]) return report_in_distances(p);
  start_pairs<TFGW_COLUMNS, Team<kStartWarps>>(p);
}

// Also persistent.
TFGW_KERNEL(kSolveThreads, kSolveBlocks) tfgw_solve(const TFGW_GRID_CONSTANT Problem p) {
  if (p.queue[kInvalid]) return;
  SolveBlock<TFGW_COLUMNS, kSharedAtoms>(p, p.shared_size).run();
}

#if TFGW_COLUMNS <= 32
// `start` with one warp per pair: slower for one pair, faster for many small ones, because no warp waits for another.
TFGW_KERNEL(32, kStartWarps * kStartBlocks) tfgw_start_many(const TFGW_GRID_CONSTANT Problem p) {
  if (p.queue[kInvalid]) return report_in_distances(p);
  start_pairs<TFGW_COLUMNS, Team<1>>(p);
}

// `solve` for many small pairs: fewer registers, higher occupancy.
TFGW_KERNEL(kSolveThreads, kSmallBlocks) tfgw_solve_small(const TFGW_GRID_CONSTANT Problem p) {
  if (p.queue[kInvalid]) return;
  SolveBlock<TFGW_COLUMNS, kSmallSharedAtoms>(p, p.small_shared).run_small();
}
#endif

// One block per node.
TFGW_KERNEL(kNodeThreads)
tfgw_backward_nodes(const TFGW_GRID_CONSTANT Problem p, const TFGW_GRID_CONSTANT Gradients g) {
  TFGW_SHARED NodeMemory memory;
  if (p.queue[kInvalid]) return;
  Backward(p, g).node(block_index(), memory);
}

TFGW_KERNEL(kEdgeThreads)
tfgw_backward_edges(const TFGW_GRID_CONSTANT Problem p, const TFGW_GRID_CONSTANT Gradients g) {
  const i64 e = i64(block_index()) * threads_in_block() + thread_in_block();
  if (e < p.edges && !p.queue[kInvalid]) Backward(p, g).edge(e);
}

// One block per template node and tile.
TFGW_KERNEL(kTemplateThreads)
tfgw_backward_templates(const TFGW_GRID_CONSTANT Problem p, const TFGW_GRID_CONSTANT Gradients g) {
  TFGW_SHARED TemplateMemory<TFGW_COLUMNS> memory;
  if (p.queue[kInvalid]) return;
  Backward backward(p, g);
  const int tiles = backward.tiles(), node = block_index() / tiles, m = int(p.columns);
  backward.template_node(node / m, node % m, block_index() % tiles, memory);
}

// One block per template.
TFGW_KERNEL(kEntryThreads) tfgw_fold(const TFGW_GRID_CONSTANT SharedEntries s) { fold_entries(s, block_index()); }

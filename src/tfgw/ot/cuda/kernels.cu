// Entry points. Compiled once per size class, with TFGW_COLUMNS the number of padded template nodes.
#include "backward.cuh"
#include "index.cuh"
#include "prepare_graph.cuh"
#include "prepare_template.cuh"
#include "solve_block.cuh"
#include "start.cuh"

using namespace tfgw;

// One block.
TFGW_KERNEL(kIndexThreads) tfgw_index(const TFGW_PARAMETER Problem p) {
  TFGW_SHARED IndexMemory memory;
  Indexer(p, memory).run();
}

// One block per graph, then one per template; two blocks at a time, or the compiler saves registers that are there.
TFGW_KERNEL(kPrepareThreads, 2) tfgw_prepare(const TFGW_PARAMETER Problem p) {
  TFGW_SHARED PrepareMemory<TFGW_COLUMNS> memory;
  const int item = block_index();
  if (item < p.graphs) {
    GraphPreparer<TFGW_COLUMNS>(p, item, memory).run();
    if (thread_in_block() == 0) check_small_graph<TFGW_COLUMNS>(p, item);
  } else {
    TemplatePreparer<TFGW_COLUMNS>(p, item - int(p.graphs), memory).run();
  }
}

// As many blocks as the working memory has room for.
TFGW_KERNEL(kStartThreads, kStartBlocks) tfgw_start(const TFGW_PARAMETER Problem p) {
  if (p.queue[kInvalid]) return;
  start_pairs<TFGW_COLUMNS, Team<kStartWarps>>(p);
}

#if TFGW_COLUMNS <= 32
// The same with fewer threads for each pair: slower for one, faster for many small ones.
TFGW_KERNEL(kStartThreads / 2, 2 * kStartBlocks) tfgw_start_many(const TFGW_PARAMETER Problem p) {
  if (p.queue[kInvalid]) return;
  start_pairs<TFGW_COLUMNS, Team<kStartWarps / 2>>(p);
}
#endif

// The same.
TFGW_KERNEL(kSolveThreads, kSolveBlocks) tfgw_solve(const TFGW_PARAMETER Problem p) {
  if (p.queue[kInvalid]) return;
  SolveBlock<TFGW_COLUMNS>(p).run();
}

// One block per node.
TFGW_KERNEL(kNodeThreads) tfgw_backward_nodes(const TFGW_PARAMETER Problem p, const TFGW_PARAMETER Gradients g) {
  TFGW_SHARED NodeMemory memory;
  Backward(p, g).node(block_index(), memory);
}

TFGW_KERNEL(kEdgeThreads) tfgw_backward_edges(const TFGW_PARAMETER Problem p, const TFGW_PARAMETER Gradients g) {
  const i64 e = i64(block_index()) * threads_in_block() + thread_in_block();
  if (e < p.edges) Backward(p, g).edge(e);
}

// One block per template node and tile.
TFGW_KERNEL(kTemplateThreads)
tfgw_backward_templates(const TFGW_PARAMETER Problem p, const TFGW_PARAMETER Gradients g) {
  TFGW_SHARED TemplateMemory<TFGW_COLUMNS> memory;
  Backward backward(p, g);
  const int tiles = backward.tiles(), node = block_index() / tiles, m = int(p.columns);
  backward.template_node(node / m, node % m, block_index() % tiles, memory);
}

// The kernels of the backward pass.
#include "backward.cuh"
#include "shared_entries.cuh"

using namespace tfgw;

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

#include "layout.hpp"

#include <algorithm>

namespace tfgw::gpu {
namespace {

constexpr i64 kReserved = 1 << 10;  // bytes of shared memory that each block takes besides
constexpr i64 kBlock = 3 << 10, kSmallTree = 64 * 20, kLargeTree = 160 * 32;

// Bytes of working memory that a solve takes at most, if a single graph of all its nodes can do with them.
constexpr i64 kLargestScratch = i64(2) << 30;

}  // namespace

std::optional<int> size_class(i64 columns) {
  for (int size : {16, 32, 64, 128})
    if (columns <= size) return size;
  return std::nullopt;
}

i64 workspace_size(i64 rows, i64 padded) {
  constexpr i64 kAtoms = 32;
  const i64 entries = rows + padded;
  return rows * padded * (6 + kAtoms) + 2 * entries * (1 + kAtoms) + 8 * entries + 3 * kAtoms * kAtoms + 64;
}

// A graph of three times the average size is to have room in a block's shared memory (solve_block.cuh), and as many
// blocks as possible are to have room at a time.
SolveShape solve_shape(const Problem& p, i64 shared) {
  if (p.padded > 32)  // what is used most has room, the rest does not
    return {kSolveBlocks, shared / kSolveBlocks - kReserved, 0};
  const i64 rows = ceil_div(p.nodes, p.graphs);
  // workspace.cuh: plan, first basis and structure, then two matrices, or three of a small graph.
  const i64 per_row = 32 + 20 * p.edges / p.nodes + 16 * p.padded;
  const i64 fixed = 2560 + (16 + 8 * p.columns) * p.padded;
  const i64 largest = kBlock + fixed + kLargeTree + 3 * rows * per_row;
  const i64 per_processor = std::clamp(shared / (largest + kReserved), i64(1), i64(kSolveBlocks));
  const i64 block = (shared / per_processor - kReserved) / 16 * 16;
  const i64 small = ((block - kBlock) / kBlockWarps - fixed - kSmallTree) / (per_row + 8 * p.padded);
  return {per_processor, block, std::max(i64(0), std::min(small, 64 - p.columns))};
}

i64 scratch_size(const Problem& p, i64 blocks) {
  const i64 typical = workspace_size(ceil_div(6 * p.nodes, p.graphs), p.padded);
  return std::max(workspace_size(p.nodes, p.padded), std::min(kLargestScratch / 8, blocks * typical));
}

i64 place_prepared(Problem& p, i64 address) {
  Arena arena(address);
  each_prepared(p, [&](const char*, auto*& member, i64 entries) { arena.take(member, entries); });
  return arena.end();
}

void place_results(Problem& p, i64 pairs, i64 plans) {
  const i64 count = p.graphs * p.templates, rows = p.nodes * p.templates;
  p.structure_cost = reinterpret_cast<double*>(pairs);
  p.feature_cost = p.structure_cost + count;
  p.gap = p.feature_cost + count;
  p.iterations = reinterpret_cast<int*>(p.gap + count);  // both counts in the room of one
  p.status = p.iterations + count;
  if (!plans) return;
  p.plan = reinterpret_cast<double*>(plans);
  p.row_potential = p.plan + rows * p.columns;
  p.col_potential = p.row_potential + rows;
}

i64 plan_words(const Problem& p) {
  return p.nodes * p.templates * (p.columns + 1) + p.graphs * p.templates * p.columns;
}

}  // namespace tfgw::gpu

// The kernels as functions for the tests to call: launch_NAME(blocks, bytes of shared memory, struct[, another]). They
// return whether a block wrote beyond its shared memory.
#include "prepare.cu"
#include "start.cu"
#include "solve.cu"
#if TFGW_COLUMNS <= 128
#include "starts.cu"
#include "starts_begin.cu"
#endif
#if TFGW_COLUMNS <= 32
#include "starts_small.cu"
#include "solve_small.cu"
#include "start_many.cu"
#endif
#include "backward.cu"

template <class Kernel>
bool launch(int blocks, int shared, int threads, Kernel kernel) {
  bool beyond = false;
  for (int b = 0; b < blocks; ++b) {
    SharedMemory::current().clear(shared);
    Block::current().run(b, blocks, threads, kernel);
    beyond = beyond || SharedMemory::current().is_used_beyond(shared);
  }
  return beyond;
}

#define TFGW_LAUNCH(NAME, THREADS) TFGW_LAUNCH_OF(Problem, NAME, THREADS)
#define TFGW_LAUNCH_OF(STRUCT, NAME, THREADS)                                  \
  extern "C" int launch_##NAME(int blocks, int shared, const STRUCT* p) {      \
    return launch(blocks, shared, THREADS, [&] { NAME(*p); });                 \
  }
#define TFGW_LAUNCH_WITH(STRUCT, NAME, THREADS)                                                   \
  extern "C" int launch_##NAME(int blocks, int shared, const Problem* p, const STRUCT* more) {    \
    return launch(blocks, shared, THREADS, [&] { NAME(*p, *more); });                             \
  }

TFGW_LAUNCH_WITH(SharedEntries, tfgw_index, 64)
TFGW_LAUNCH(tfgw_prepare, 64)
TFGW_LAUNCH(tfgw_start, 32 * kStartWarps)
#if TFGW_COLUMNS <= 32
TFGW_LAUNCH(tfgw_start_many, 32)
TFGW_LAUNCH(tfgw_solve_small, 32 * kBlockWarps)
TFGW_LAUNCH_WITH(Starts, tfgw_starts_small, 32 * kBlockWarps)
#endif
TFGW_LAUNCH(tfgw_solve, 32 * kBlockWarps)
#if TFGW_COLUMNS <= 128
TFGW_LAUNCH_WITH(Starts, tfgw_starts_begin, kBeginThreads)
TFGW_LAUNCH_WITH(Starts, tfgw_starts_pin, kBeginThreads)
TFGW_LAUNCH_WITH(Starts, tfgw_starts_walk, 64)
TFGW_LAUNCH_WITH(Starts, tfgw_starts_product, kBeginThreads)
TFGW_LAUNCH_WITH(Starts, tfgw_starts_spread, kBeginThreads)
TFGW_LAUNCH_WITH(Starts, tfgw_starts, 32 * kBlockWarps)
#endif
TFGW_LAUNCH_WITH(Gradients, tfgw_backward_nodes, 64)
TFGW_LAUNCH_WITH(Gradients, tfgw_backward_edges, 128)
TFGW_LAUNCH_WITH(Gradients, tfgw_backward_templates, 64)
TFGW_LAUNCH_OF(SharedEntries, tfgw_fold, 64)

extern "C" i64 workspace_size(int rows) { return Workspace<TFGW_COLUMNS, false>::size(rows); }
#if TFGW_COLUMNS <= 128
extern "C" i64 starts_workspace_size(int rows) { return SeveralStarts::workspace_size<TFGW_COLUMNS>(rows); }

// Doubles of working memory that several starts take really, besides those of a solve.
extern "C" i64 starts_memory_taken(int rows) {
  char* const global = reinterpret_cast<char*>(i64(1) << 40);
  return (reinterpret_cast<char*>(StartsMemory<TFGW_COLUMNS>(global, rows).exchange + 1) - global + 7) / 8;
}
extern "C" double quotient_of_walk(double v, double by) {
  const Divisor divisor(by);
  return divisor.divides(v) ? divisor.quotient(v) : v / by;
}
extern "C" i64 starts_memory_size(int rows) { return StartsMemory<TFGW_COLUMNS>::size(rows); }
#endif

// Doubles of working memory that a pair takes really, with so many bytes of shared memory.
extern "C" i64 workspace_taken(int rows, int shared) {
  char* const shared_memory = reinterpret_cast<char*>(i64(1) << 50);
  char* const global = reinterpret_cast<char*>(i64(1) << 40);
  SpillArena arena(shared_memory, shared, global);
  arena.take<GlobalTree<TFGW_COLUMNS>::Tree::Memory>(1);
  const Workspace<TFGW_COLUMNS, false> taken(arena, rows, TFGW_COLUMNS, 0);
  return (reinterpret_cast<char*>(taken.plan(kMaxAtoms)) - global) / 8;
}

// Bytes of shared memory that a pair takes whose structure has so many entries, besides those of its block.
extern "C" int shared_bytes(int rows, int cols, int packed) {
#if TFGW_COLUMNS <= 32
  return int(shared_bytes<TFGW_COLUMNS, kSharedAtoms>(rows, cols, packed));
#else
  return 0;
#endif
}
// The same where there are many small pairs.
extern "C" int small_bytes(int rows, int cols, int packed) {
#if TFGW_COLUMNS <= 32
  return int(shared_bytes<TFGW_COLUMNS, kSmallSharedAtoms>(rows, cols, packed));
#else
  return 0;
#endif
}
// The least that a pair takes that is solved from several starts by a single warp.
extern "C" int least_bytes(int rows, int cols) {
#if TFGW_COLUMNS <= 32
  return int(least_bytes<TFGW_COLUMNS, kStartsSharedAtoms>(rows, cols));
#else
  return 0;
#endif
}
extern "C" int block_bytes() { return sizeof(BlockMemory<TFGW_COLUMNS>); }

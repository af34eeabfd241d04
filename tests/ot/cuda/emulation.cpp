// The kernels as functions for the tests to call: launch_NAME(blocks, problem[, gradients]).
#include "kernels.cu"
#include "shared_entries.cu"

#define TFGW_LAUNCH(NAME, THREADS) TFGW_LAUNCH_OF(Problem, NAME, THREADS)
#define TFGW_LAUNCH_OF(STRUCT, NAME, THREADS)                                                     \
  extern "C" void launch_##NAME(int blocks, const STRUCT* p) {                                    \
    for (int b = 0; b < blocks; ++b) Block::current().run(b, blocks, THREADS, [&] { NAME(*p); }); \
  }
#define TFGW_LAUNCH_BACKWARD(NAME, THREADS)                                                        \
  extern "C" void launch_##NAME(int blocks, const Problem* p, const Gradients* g) {                \
    for (int b = 0; b < blocks; ++b) Block::current().run(b, blocks, THREADS, [&] { NAME(*p, *g); }); \
  }

TFGW_LAUNCH(tfgw_index, 64)
TFGW_LAUNCH(tfgw_prepare, 64)
TFGW_LAUNCH(tfgw_solve, 32 * kBlockWarps)
TFGW_LAUNCH_BACKWARD(tfgw_backward_nodes, 64)
TFGW_LAUNCH_BACKWARD(tfgw_backward_edges, 128)
TFGW_LAUNCH_BACKWARD(tfgw_backward_templates, 64)
TFGW_LAUNCH_OF(SharedEntries, tfgw_expand, 64)
TFGW_LAUNCH_OF(SharedEntries, tfgw_fold, 64)

extern "C" i64 workspace_size(int rows) { return Workspace<TFGW_COLUMNS, false>::size(rows); }

// Bytes of shared memory that pairs take whose structure has so many entries: of a block, and of a warp on its own.
template <class Kind>
int room(int rows, int cols, int packed) {
  PlaceFinder finder(nullptr);
  finder.take<typename Kind::Tree::Memory>(1);
  typename Kind::Memory(finder, rows, cols, packed);
  return finder.used();
}
extern "C" int shared_memory_of_large(int rows, int cols, int packed) {
#if TFGW_COLUMNS <= 32
  return int(sizeof(BlockMemory<TFGW_COLUMNS>)) + room<Near<TFGW_COLUMNS, kLarge, kBlockWarps>>(rows, cols, packed);
#else
  return 0;
#endif
}
extern "C" int places() {
  int found[64];
  for (int& place : found) place = -1;
#if TFGW_COLUMNS <= 32
  PlaceFinder finder(found);
  finder.take<FlatTree<TFGW_COLUMNS, kSmall>::Memory>(1);
  Near<TFGW_COLUMNS, kSmall, 1>::Memory(finder, 3, 2, 1);
#endif
  return int(std::count_if(found, found + 64, [](int place) { return place >= 0; }));
}
extern "C" int most_places() { return kPlaces; }
extern "C" int shared_memory_of_small(int rows, int cols, int packed) {
#if TFGW_COLUMNS <= 32
  return int(sizeof(BlockMemory<TFGW_COLUMNS>)) / kBlockWarps + room<Near<TFGW_COLUMNS, kSmall, 1>>(rows, cols, packed);
#else
  return 0;
#endif
}

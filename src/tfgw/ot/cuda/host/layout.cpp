#include "layout.hpp"

#include <algorithm>

#include "start_rules.cuh"

namespace tfgw::gpu {
namespace {

// Bytes of a block besides its pairs, and of a basis with this many nodes (flat_tree.cuh).
constexpr i64 kBlock = 4 << 10, kSmallTree = 66 * 20 + 128, kMediumTree = 98 * 24 + 160, kHugeTree = 162 * 32 + 496;
constexpr i64 kWalkStatic = 6 << 10;  // of `starts_walk`: WalkMemory and a number per column

// Limit on the bytes of scratch memory of a solve, unless a single graph of all its nodes needs more. For wide
// templates, of which few pairs would fit, this share of the GPU's memory if it is more.
constexpr i64 kLargestScratch = i64(2) << 30, kWideShare = 16;

struct Arc {  // as in initial_state.cuh, of which the host needs only the size
  i64 flow;
  int row, col;
};

}  // namespace

std::optional<int> size_class(i64 columns) {
  for (int size : kSizeClasses)
    if (columns <= size) return size;
  return std::nullopt;
}

i64 workspace_size(i64 rows, i64 padded, bool several) {
  constexpr i64 kAtoms = kMaxAtoms;
  const i64 entries = rows + padded;
  const i64 wide_basis = padded > 128 ? padded * padded / 16 + 8 * padded : 0;
  const i64 starts = several ? rows * padded + 8 * rows + 32 : 0;
  return starts + rows * padded * (4 + kAtoms) + 2 * entries * (1 + kAtoms) + 6 * entries + 4 * rows +
         3 * kAtoms * kAtoms + 64 + wide_basis;
}

// A graph of three times the average size should fit into a block's shared memory (solve_block.cuh), with as many
// resident blocks as possible.
SolveShape solve_shape(const Problem& p, i64 shared, i64 processors, const StartCounts& counted) {
  const i64 items = p.graphs * p.templates * std::max(i64(1), counted.fresh);
  const i64 of_starts = counted.several() ? sizeof(StartsBlock) : 0;
  const auto share = [&](i64 blocks) { return (shared / blocks - kReservedBytes - of_starts) / 16 * 16; };
  if (p.padded > kLargestForSmallGraphs) {  // only the most used arrays fit
    const i64 solves = p.padded > 256 ? 1 : kSolveBlocks;  // the basis alone takes 164 KiB
    return {solves, share(solves), {0, 0, 0}, kStartBlocks, share(kStartBlocks), false, -1, 0};
  }
  const i64 average = ceil_div(p.nodes, p.graphs), table = 8 * p.columns * (p.padded + 4);
  const i64 per_row = 64 + 20 * p.edges / p.nodes + 16 * p.padded;  // plan or first basis, structure, two matrices
  const auto fixed_of = [&](i64 atoms) { return 1536 + 16 * atoms * atoms + 16 * p.padded + table; };  // workspace.cuh
  const i64 fixed = fixed_of(counted.several() ? kStartsSharedAtoms : kSharedAtoms);
  const auto blocks = [&](i64 bytes, i64 most) { return std::clamp(shared / (bytes + kReservedBytes), i64(1), most); };
  const i64 solves = blocks(kBlock + fixed + kHugeTree + 3 * average * per_row, kSolveBlocks);
  const auto start_bytes = [&](i64 rows) { return 1024 + table + rows * per_row; };  // start.cuh
  const i64 alone = blocks(start_bytes(2 * average), kStartWarps * kStartBlocks);  // pairs started by one warp each
  const bool many = p.graphs * p.templates >= 4 * alone * processors && alone >= 2 * kStartBlocks;
  // Larger graphs keep some of their matrices in global memory. With room for 5/2 of the average, three instead of four
  // blocks were resident on NCI1 and ENZYMES, whose forward passes took 2 to 4 % longer.
  const i64 starts = many ? alone : blocks(start_bytes(3 * average / 2), kStartBlocks);
  const auto nodes_of = [&](i64 bytes, i64 arcs, i64 row) {
    return std::max(i64(0), std::min(bytes / row, arcs + 1 - p.columns));
  };
  const auto nodes = [&](i64 pairs) {
    const i64 bytes = (share(solves) - kBlock) / pairs - fixed;
    return std::max(nodes_of(bytes - kSmallTree, 64, per_row), nodes_of(bytes - kMediumTree, 96, per_row));
  };
  // With several starts, the template's table and then the newest cross term may be in global memory
  // (solve_block.cuh), so that more pairs share a block. That pays off if a block has no room for four average pairs
  // with them: without the cross term, `starts` took 3,178 instead of 3,528 µs on ENZYMES and 6,854 instead of 7,082 on
  // PROTEINS_full, but 3,650 instead of 3,283 on IMDB-BINARY and 1,161 instead of 1,025 on MUTAG, where four average
  // pairs fit with it (H200, 128 graphs × 8 templates, 8 starts).
  const bool spills = counted.several() && average > nodes(4);
  const i64 least_row = 64 + 8 * p.padded;  // without the structure's entries
  const auto at_a_time = [&](i64 pairs) {
    if (!spills) return nodes(pairs);
    return nodes_of((share(solves) - kBlock) / pairs - fixed + table - kMediumTree, 96, least_row);
  };
  const i64 of_small = (share(kSmallBlocks) - kBlock) / kBlockWarps - fixed_of(kSmallSharedAtoms);
  const i64 small = nodes_of(of_small - kSmallTree, 64, per_row);
  const bool many_small = items >= kMany * kSolveBlocks * processors && 4 * small >= 3 * average && !p.dense;
  return {solves, share(solves), {at_a_time(2), at_a_time(3), at_a_time(4)}, starts, share(starts), many,
          many_small ? small : -1, share(kSmallBlocks)};
}

i64 team_pairs(const Problem& p, i64 blocks) {
  return ceil_div(p.nodes, p.graphs) > p.for_four ? blocks : blocks / 2;
}

i64 scratch_size(const Problem& p, i64 blocks, i64 small_blocks, bool several, i64 memory) {
  const auto size = [&](i64 rows) { return workspace_size(rows, p.padded, several); };
  const i64 each = std::max({size(ceil_div(6 * p.nodes, p.graphs)), 2 * size(p.for_two), 3 * size(p.for_three),
                             4 * size(p.for_four)});
  const i64 small = p.for_small < 0 ? 0 : small_blocks * kBlockWarps * size(p.for_small);
  const i64 most = p.padded > 128 ? std::max(kLargestScratch, memory / kWideShare) : kLargestScratch;
  return std::max(size(p.nodes), std::min(most / 16 * 2, std::max(blocks * each, small)));
}

i64 beginning_size(i64 graphs, i64 nodes, i64 templates, i64 padded, bool start) {
  const i64 rows = nodes * templates, pairs = graphs * templates;
  return (start ? 4 : 2) * rows * padded + 2 * (rows + pairs * padded) + 2 * pairs;
}

StartCounts::StartCounts(i64 count, i64 kinds, bool given, bool spreads)
    : count(count), kinds(kinds), fresh(0), rounds(0), waves(0), given_and_product(false), spreads(spreads) {
  if (count == 1 && (given || (kinds & kUniform))) return;
  const bool repeats = kinds & (kUniform | kAnchored);
  if (!(kinds & kPerturbed)) fresh = count;
  else if (repeats)
    fresh = count / kStartsPerRound * kFreshStarts + std::min(count % kStartsPerRound, i64(kFreshStarts));
  else fresh = 1;
  if (kinds & kPerturbed && !repeats) rounds = count > 1;
  else if (kinds & kPerturbed && count > kFreshStarts) rounds = ceil_div(count - kFreshStarts, kStartsPerRound);
  if (rounds) waves = repeats ? std::min(count, i64(kStartsPerRound)) - kFreshStarts : count - 1;
  for (int s = 1; s < count && given && !given_and_product; ++s)
    given_and_product = kind_of_start(s, int(kinds)) == kUniform;
}

PlacedStarts place_starts(const Problem& p, const StartCounts& starts, i64 address) {
  if (!starts.several()) return {};
  const i64 pairs = p.graphs * p.templates, rows = p.nodes * p.templates;
  Starts s{};
  s.count = starts.count, s.kinds = starts.kinds, s.fresh = starts.fresh, s.rounds = starts.rounds;
  Arena arena(address);
  arena.take(s.best, pairs);
  arena.take(s.queues, kQueues * kCounters);
  const i64 most = std::max(starts.fresh, starts.rounds);
  arena.take(s.cost, most * rows * p.padded);
  Arc* arcs;
  arena.take(arcs, most * (rows + pairs * p.padded));
  s.arcs = arcs;
  arena.take(s.kind, most * pairs);
  if (starts.rounds || starts.spreads) arena.take(s.value, pairs * starts.count);
  if (starts.rounds) {
    arena.take(s.gradient, starts.rounds * rows * kKeptMinima * p.padded);
    LowestValues* lowest;
    arena.take(lowest, starts.rounds * pairs);
    s.lowest = lowest;
  }
  if (starts.kinds & kAnchored) {
    s.anchored = starts.fresh, s.walks = std::min(p.nodes, 2 * s.anchored * p.templates);
    arena.take(s.pair_kinds, pairs);
    arena.take(s.scale, pairs);
    arena.take(s.pinned, pairs * s.anchored);
    arena.take(s.walk_of, p.nodes);
    arena.take(s.graph_samples, p.nodes * s.walks * kWalkSamples);
    arena.take(s.template_samples, 2 * p.templates * s.anchored * kWalkSamples * p.padded);
  }
  double* product = p.initial_state;
  if (starts.given_and_product) arena.take(product, beginning_size(p.graphs, p.nodes, p.templates, p.padded, false));
  s.tied = product + rows * p.padded;
  s.at_product = product + 2 * rows * p.padded + 2 * (rows + pairs * p.padded);
  return {s, product, arena.end() - address};
}

i64 begin_shared(i64 shared) { return (shared / kBeginBlocks - kReservedBytes) / 16 * 16; }
i64 walk_shared(i64 shared) {
  return std::max(i64(0), (shared / kWalkBlocks - kReservedBytes - kWalkStatic) / 16 * 16);
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
  p.iterations = reinterpret_cast<int*>(p.gap + count);  // two int arrays in the space of one array of doubles
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

#include "gpu.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <type_traits>

#include "start_rules.cuh"

namespace tfgw::gpu {
namespace {

struct KernelKind {
  const char* name;
  unsigned threads;
};
constexpr KernelKind kKinds[kKernels] = {
    {"tfgw_index", kIndexThreads},
    {"tfgw_prepare", kPrepareThreads},
    {"tfgw_start", kStartThreads},
    {"tfgw_start_many", 32},
    {"tfgw_solve", kSolveThreads},
    {"tfgw_solve_small", kSolveThreads},
    {"tfgw_starts_product", kBeginThreads},
    {"tfgw_starts_pin", kBeginThreads},
    {"tfgw_starts_walk", kWalkThreads},
    {"tfgw_starts_begin", kBeginThreads},
    {"tfgw_starts", kSolveThreads},
    {"tfgw_starts_small", kSolveThreads},
    {"tfgw_starts_spread", kBeginThreads},
    {"tfgw_backward_nodes", kNodeThreads},
    {"tfgw_backward_edges", kEdgeThreads},
    {"tfgw_backward_templates", kTemplateThreads},
    {"tfgw_fold", kEntryThreads},
};

constexpr i64 kMostItems = i64(1) << 30;  // of a queue; the kernels count them with int
constexpr unsigned kWithoutTiming = 2, kPortable = 1;  // flags of events, of host memory

template <class T>
void point(T*& member, i64 address) {
  member = reinterpret_cast<T*>(address);
}

double*& member_of(Gradients& g, Field field) {
  switch (field) {
    case kX: return g.x;
    case kNodeWeights: return g.weights;
    case kEdgeWeight: return g.edge_weight;
    case kStructure: return g.dense;
    case kTemplateStructure: return g.template_structure;
    case kTemplateFeatures: return g.template_x;
    case kTemplateWeights: return g.template_weights;
    case kAlpha: return g.alpha;
    default: throw std::logic_error(std::string(kFieldNames[field]) + " is not differentiable");
  }
}

}  // namespace

// Holds a check for the duration of one solve.
class Gpu::Lease {
 public:
  explicit Lease(Gpu& gpu) : gpu_(gpu) {
    if (gpu.checks_.empty()) {
      void* word = nullptr;
      gpu.driver_.call("memory of the host", gpu.driver_.host_alloc, &word, sizeof(int), kPortable);
      check_.word = static_cast<int*>(word);
      gpu.driver_.call("creation of an event", gpu.driver_.event_create, &check_.event, kWithoutTiming);
    } else {
      check_ = gpu.checks_.back();
      gpu.checks_.pop_back();
      if (check_.pending) {  // an abandoned solve was never waited for: its kernels may still write
        nb::gil_scoped_release other_threads;
        wait();
      }
    }
    *check_.word = 0;
  }
  ~Lease() {
    if (recorded_) gpu_.checks_.push_back(check_);  // else kernels may still write, with no event after them
  }
  Lease(const Lease&) = delete;

  int* word() const { return const_cast<int*>(check_.word); }
  // Call after launching the last kernel that checks input.
  void record(Handle stream) {
    gpu_.driver_.call("record of an event", gpu_.driver_.event_record, check_.event, stream);
    recorded_ = check_.pending = true;
  }
  // Waits for those kernels and raises their errors. Returns whether the input is valid.
  bool passed() {
    wait();
    check_.pending = false;
    return *check_.word == 0;
  }

 private:
  void wait() const { gpu_.driver_.call("wait for the GPU", gpu_.driver_.event_synchronize, check_.event); }

  Gpu& gpu_;
  Check check_{};
  bool recorded_ = false;
};

// How many blocks to launch, and with how much memory.
struct Gpu::Launches {
  SolveShape shape;
  StartCounts counts;
  PlacedStarts placed;
  i64 pairs, small_blocks;
  i64 processors;

  // Blocks of `solve` or `starts` for a queue of this many items per pair.
  i64 blocks(i64 items) const { return std::min(pairs * items, shape.per_processor * processors); }
};

ProblemSize::ProblemSize(nb::handle given) {
  const auto read = [&](auto& member, const char* name) {
    member = nb::cast<std::decay_t<decltype(member)>>(given.attr(name));
  };
  read(graphs, "num_graphs"), read(nodes, "num_nodes");
  read(templates, "num_templates"), read(columns, "template_nodes");
  read(start, "has_initial_plans"), read(starts, "n_starts"), read(kinds, "start_kinds");
}

std::optional<std::string> Gpu::unsupported_reason(const ProblemSize& size) const {
  const auto& [graphs, nodes, templates, columns, start, starts, kinds] = size;
  const std::optional<int> padded = size_class(columns);
  if (!padded)
    return "templates have " + std::to_string(columns) + " nodes, more than " + std::to_string(kSizeClasses.back());
  if (properties_.generation < kOldestGeneration)
    return "the GPU is older than compute capability " + std::to_string(kOldestGeneration) + ".0";
  const StartCounts counts(starts, kinds, start);
  if (counts.several() && *padded > kLargestForStarts)
    return "templates have " + std::to_string(columns) + " nodes, and several starts are limited to " +
           std::to_string(kLargestForStarts);
  const i64 room = properties_.memory / 16;  // half the memory, in doubles
  const i64 workspace = workspace_size(nodes, *padded, counts.several());
  if (workspace > room)
    return "a batch of " + std::to_string(nodes) + " nodes may hold a graph too large for its memory";
  if (graphs * templates > kMostItems / std::max(i64(1), counts.fresh))
    return std::to_string(graphs * templates) + " pairs have too many starts for its queue";
  Problem p{};
  p.graphs = graphs, p.nodes = nodes, p.templates = templates, p.padded = *padded;
  const i64 shared_by_starts = place_starts(p, counts, 0).bytes / 8;
  if (workspace + beginning_size(graphs, nodes, templates, *padded, start) + shared_by_starts > room)
    return "its memory has no room for " + std::to_string(nodes) + " nodes and " + std::to_string(templates) +
           " templates at a time" + (counts.several() ? ", with " + std::to_string(starts) + " starts" : "");
  return std::nullopt;
}

nb::object Gpu::solve(nb::tuple given, double weight_tolerance, int wanted) {
  const ProblemView view(given);
  KernelProblem d = describe(view);
  Problem& p = d.problem;
  // Without structure, the problem is linear, and its only minimum needs no other start.
  const bool structured = d.given.has(kEdgeIndex) || d.given.has(kStructure);
  const StartCounts counts(structured ? view.as<i64>(kNumStarts) : 1,
                           structured ? view.as<i64>(kStartKinds) : i64(kUniform), p.start != nullptr,
                           wanted & kDiagnosis);
  const i64 processors = std::max(i64(1), properties_.processors / view.as<i64>(kConcurrentSolves));
  const SolveShape shape = solve_shape(p, properties_.shared, processors, counts);
  const i64 count = p.graphs * p.templates;
  Launches launches{shape, counts, {}, count, kSmallBlocks * processors, processors};
  const i64 blocks = launches.blocks(std::max(i64(1), counts.fresh));
  p.shared_size = shape.shared, p.start_shared = shape.start_shared;
  p.for_two = shape.small_graphs[0], p.for_three = shape.small_graphs[1], p.for_four = shape.small_graphs[2];
  p.for_small = shape.smallest_graphs, p.small_shared = shape.small_shared, p.several = counts.several();
  p.team_pairs = team_pairs(p, blocks);
  p.max_iter = view.as<i64>(kMaxIter), p.tol = view.as<double>(kTol), p.weight_tolerance = weight_tolerance;
  p.scratch_size = scratch_size(p, blocks, launches.small_blocks, counts.several(), properties_.memory);
  const i64 beginning = beginning_size(p.graphs, p.nodes, p.templates, p.padded, p.start != nullptr);
  const i64 of_starts = place_starts(p, counts, 0).bytes;
  const i64 working = 8 * (beginning + p.scratch_size) + of_starts, of_pairs = 8 * kPairWords * count;
  // Each allocation takes as long as a launch, so memory that is internal or only read by the backward pass is one
  // allocation.
  const bool results_for_gradients = wanted & kResults && wanted & kGradients;
  const bool plans_apart = wanted & (kPlans | kDiagnosis) || results_for_gradients;
  const bool apart = wanted & kResults || plans_apart, only_gradients = wanted & kGradients && !apart;
  const i64 words = plan_words(p);
  const i64 behind = !wanted ? working + of_pairs : only_gradients ? of_pairs + 8 * words : 0;
  place(d, torch_.bytes(d.prepared_size + behind, d.device));
  const Handle stream = current_stream();
  int capturing = 0;
  driver_.call("query of the stream", driver_.stream_is_capturing, stream, &capturing);
  std::optional<Lease> check;
  if (!capturing) p.invalid = check.emplace(*this).word();
  {
    nb::gil_scoped_release other_threads;
    prepare(d, stream);
    if (check) check->record(stream);
  }
  // Allocate the results while those kernels run.
  const nb::object distance = torch_.doubles(d.device, p.graphs, p.templates);
  const nb::object pairs = apart ? torch_.doubles(d.device, kPairWords, p.graphs, p.templates) : nb::none();
  const nb::object plans = plans_apart ? torch_.doubles(d.device, words) : nb::none();
  const bool has_spreads = counts.several() && counts.spreads;
  const nb::object spreads = has_spreads ? torch_.doubles(d.device, p.graphs, p.templates) : nb::none();
  const nb::object scratch = wanted ? torch_.bytes(working, d.device) : nb::none();
  point(p.distance, torch_.address(distance));
  point(p.initial_state, wanted ? torch_.address(scratch) : d.prepared_end);
  const i64 starts_at = reinterpret_cast<i64>(p.initial_state + beginning);
  launches.placed = place_starts(p, counts, starts_at);
  point(launches.placed.starts.spread, torch_.address(spreads));
  point(p.scratch, starts_at + of_starts);
  const i64 pairs_at = apart ? torch_.address(pairs) : d.prepared_end + (wanted ? 0 : working);
  place_results(p, pairs_at, only_gradients ? pairs_at + of_pairs : torch_.address(plans));
  bool valid;
  {
    nb::gil_scoped_release other_threads;
    if (counts.several()) launch_starts(p, launches, stream);
    else launch_solve(p, launches, stream);
    valid = !check || check->passed();
  }
  if (!valid) return nb::none();
  return nb::make_tuple(distance, pairs, plans, wanted ? d.prepared : nb::none(), spreads);
}

void Gpu::launch_solve(const Problem& p, const Launches& to, Handle stream) {
  const i64 starts = std::min(to.pairs, to.shape.start_per_processor * to.processors);
  launch(to.shape.starts_many ? kStartMany : kStart, p.padded, starts, to.shape.start_shared, stream, p);
  launch(kSolve, p.padded, to.blocks(1), p.shared_size, stream, p);
  if (p.for_small >= 0) launch(kSolveSmall, p.padded, to.small_blocks, p.small_shared, stream, p);
}

void Gpu::launch_starts(const Problem& p, const Launches& to, Handle stream) {
  Starts starts = to.placed.starts;
  const Kernel start = to.shape.starts_many ? kStartMany : kStart;
  const i64 start_blocks = std::min(to.pairs, to.shape.start_per_processor * to.processors);
  launch(start, p.padded, start_blocks, to.shape.start_shared, stream, p);
  // Every further launch needs a queue of its own: the counters of `p.queue` are used up.
  const auto with_queue = [&](StartQueue queue) {
    Problem other = p;
    other.queue = starts.queues + queue * kCounters;
    return other;
  };
  if (to.counts.given_and_product) {
    launch(kStartsProduct, p.padded, 1, 0, stream, p, starts);
    Problem product = with_queue(kProductQueue);
    product.start = nullptr, product.initial_state = to.placed.product;
    launch(start, p.padded, start_blocks, to.shape.start_shared, stream, product);
  }
  starts.wave = -1, starts.items = starts.fresh;
  starts.begin_shared = begin_shared(properties_.shared), starts.walk_shared = walk_shared(properties_.shared);
  const i64 begin_blocks = kBeginBlocks * to.processors;
  if (starts.anchored) {
    const i64 walks = p.templates + p.graphs * ceil_div(starts.walks, 32);
    launch(kStartsPin, p.padded, std::min(to.pairs, 2 * begin_blocks), 0, stream, p, starts);
    launch(kStartsWalk, p.padded, std::min(walks, kWalkBlocks * to.processors), starts.walk_shared, stream, p, starts);
  }
  const Problem queued = with_queue(kWaveQueue);
  Problem small = queued;
  small.shared_size = p.small_shared;
  const i64 more = sizeof(StartsBlock);
  for (starts.wave = -1; starts.wave < to.counts.waves; ++starts.wave) {
    starts.items = starts.wave < 0 ? starts.fresh : starts.rounds;
    const i64 begins = std::min(to.pairs * starts.items, begin_blocks);
    launch(kStartsBegin, p.padded, begins, starts.begin_shared, stream, p, starts);
    launch(kStarts, p.padded, to.blocks(starts.items), p.shared_size + more, stream, queued, starts);
    if (p.for_small >= 0) launch(kStartsSmall, p.padded, to.small_blocks, p.small_shared + more, stream, small, starts);
  }
  if (starts.spread)
    launch(kStartsSpread, p.padded, std::min(ceil_div(to.pairs, kBeginThreads), begin_blocks), 0, stream, p, starts);
}

nb::list Gpu::backward(nb::tuple given, nb::handle grad, nb::sequence needs, nb::object prepared, nb::handle pairs,
                       nb::handle plans) {
  const ProblemView view(given);
  KernelProblem d = describe(view);
  place(d, std::move(prepared));
  Problem& p = d.problem;
  if (!pairs.is_none() && plans.is_none()) throw std::logic_error("a backward pass reads plans");
  const i64 pairs_at = pairs.is_none() ? d.prepared_end : torch_.address(pairs);
  const i64 behind = pairs_at + 8 * kPairWords * p.graphs * p.templates;
  place_results(p, pairs_at, plans.is_none() ? behind : torch_.address(plans));
  Gradients g{};
  g.structure_cost = p.structure_cost, g.feature_cost = p.feature_cost, g.plan = p.plan;
  g.row_potential = p.row_potential, g.col_potential = p.col_potential;
  return gradients(d, view, g, grad, needs);
}

nb::list Gpu::backward_of_solved(nb::tuple given, nb::handle grad, nb::sequence needs, nb::handle solved,
                                 double weight_tolerance) {
  const ProblemView view(given);
  KernelProblem d = describe(view);
  place(d, torch_.bytes(d.prepared_size, d.device));
  d.problem.weight_tolerance = weight_tolerance;
  const Handle stream = current_stream();
  {
    nb::gil_scoped_release other_threads;
    prepare(d, stream);
  }
  const SolvedTensors tensors(torch_, solved);
  Gradients g{};
  g.structure_cost = tensors.structure_costs, g.feature_cost = tensors.feature_costs, g.plan = tensors.plans;
  g.row_potential = tensors.graph_potentials, g.col_potential = tensors.template_potentials;
  return gradients(d, view, g, grad, needs);
}

// `g` holds the results that the gradients are computed from.
nb::list Gpu::gradients(const KernelProblem& d, const ProblemView& view, Gradients g, nb::handle grad,
                        nb::sequence needs) {
  const Problem& p = d.problem;
  const Handle stream = current_stream();
  const auto [up, of_up] = torch_.to_native(grad, "gradient of the distances");
  point(g.grad, of_up.address);
  FieldGradients found(d.given, needs);
  found.replace_wanted([&](Field field, const nb::object&) {
    const nb::object gradient = torch_.like(d.given.read[field]);
    point(member_of(g, field), torch_.address(gradient));
    return gradient;
  });
  // In one allocation: C T, if needed for the gradient of the templates' structure, and gradients yet to be folded.
  const i64 of_plans = g.template_structure ? p.nodes * p.templates * p.columns : 0;
  const i64 of_structures = p.templates * p.columns * p.columns;
  SharedEntries fold = d.entries;
  const bool folded = fold.where && (g.template_structure || g.alpha);
  const nb::object scratch = torch_.doubles(d.device, of_plans + (folded ? of_structures + p.templates : 0));
  point(g.structured, torch_.address(scratch));
  if (folded) {
    fold.entry = g.template_structure, fold.alpha = g.alpha;
    fold.structure = g.structured + of_plans, fold.alphas = fold.structure + of_structures;
    if (g.template_structure) g.template_structure = fold.structure;
    if (g.alpha) g.alpha = fold.alphas;
  }
  {
    nb::gil_scoped_release other_threads;
    if (g.x || g.weights || g.dense || g.template_structure)
      launch(kBackwardNodes, p.padded, p.nodes, 0, stream, p, g);
    if (g.edge_weight) launch(kBackwardEdges, p.padded, ceil_div(p.edges, kEdgeThreads), 0, stream, p, g);
    if (g.template_structure || g.template_x || g.template_weights || g.alpha) {
      const i64 tiles = ceil_div(p.columns + p.features, kTile);
      launch(kBackwardTemplates, p.padded, p.templates * p.columns * tiles, 0, stream, p, g);
    }
    if (folded) launch(kFold, p.padded, p.templates, 0, stream, fold);
  }
  found.replace_wanted([&](Field field, const nb::object& gradient) {
    return torch_.in_precision_of(gradient, view[field]);
  });
  return found.list();
}

KernelProblem Gpu::describe(const ProblemView& view) const {
  KernelProblem d(torch_, view);
  const ProblemTensors& given = d.given;
  d.device = torch_.device(given.read[kX]);

  Problem& p = d.problem;
  p.graphs = view.as<i64>(kBatchSize);
  p.nodes = given.size(kX, 0), p.features = given.size(kX, 1);
  p.edges = given.size(kEdgeIndex, 1);
  p.templates = given.size(kTemplateWeights, 0), p.columns = given.size(kTemplateWeights, 1);
  p.padded = size_class(p.columns).value();
  p.dense_size = given.info[kStructure].count;
  p.padded_nodes = view.as<bool>(kPaddedNodes);

  const auto point_to = [&](auto*& member, Field field) { point(member, given.info[field].address); };
  point_to(p.batch, kBatch);
  point_to(p.x, kX);
  point_to(p.weights, kNodeWeights);
  point_to(p.edge_index, kEdgeIndex);
  point_to(p.edge_weight, kEdgeWeight);
  point_to(p.dense, kStructure);
  point_to(p.cost, kCost);
  point_to(p.template_structure, kTemplateStructure);
  point_to(p.template_x, kTemplateFeatures);
  point_to(p.template_weights, kTemplateWeights);
  point_to(p.alpha, kAlpha);
  point_to(p.start, kInitialPlans);
  point(p.skipped, torch_.address(view[kSkipped]));

  d.prepared_size = place_prepared(p, 0);
  if (d.places.is_none()) return d;
  SharedEntries& s = d.entries;
  s.places = p.columns * p.columns;
  s.templates = given.size(kTemplateStructure, 0), s.entries = given.size(kTemplateStructure, 1);
  s.alpha_step = given.info[kAlpha].count > 1;
  point(s.where, torch_.address(d.places));
  point_to(s.entry, kTemplateStructure);
  point_to(s.alpha, kAlpha);
  d.prepared_size += 16 * ceil_div(s.templates * (s.places + 1), 2);
  return d;
}

void Gpu::place(KernelProblem& d, nb::object memory) const {
  Problem& p = d.problem;
  SharedEntries& s = d.entries;
  d.prepared = std::move(memory);
  const i64 first = torch_.address(d.prepared), end = place_prepared(p, first);
  d.prepared_end = first + d.prepared_size;
  p.invalid = p.queue + kUnused;  // if the host does not read the flag
  if (d.given.has(kEdgeIndex) && !p.edges) point(p.edge_index, first);  // no edges is not the same as no structure
  if (!s.places) return;
  if (!s.where) point(s.where, first);  // entries are shared even if there are none
  point(s.structure, end);  // after all prepared members
  s.alphas = s.structure + s.templates * s.places;
  p.template_structure = s.structure, p.alpha = s.alphas;
}

void Gpu::prepare(const KernelProblem& d, Handle stream) {
  const Problem& p = d.problem;
  launch(kIndex, p.padded, 1 + (d.entries.where ? p.templates : 0), 0, stream, p, d.entries);
  launch(kPrepare, p.padded, p.graphs + p.templates, 0, stream, p);
}

// Launches a kernel that takes structs, with `shared` bytes of shared memory per block.
template <class... Structs>
void Gpu::launch(Kernel kernel, i64 padded, i64 blocks, i64 shared, Handle stream, const Structs&... structs) {
  const KernelKind& kind = kKinds[kernel];
  void* arguments[] = {const_cast<Structs*>(&structs)...};
  driver_.call(kind.name, driver_.launch_kernel, handle(kernel, padded), unsigned(blocks), 1u, 1u, kind.threads, 1u, 1u,
               unsigned(shared), stream, arguments, nullptr);
}

Handle Gpu::handle(Kernel kernel, i64 padded) {
  std::atomic<Handle>& found = handles_[padded / 32][kernel];
  if (!found) {
    nb::gil_scoped_acquire python;
    found = reinterpret_cast<Handle>(nb::cast<i64>(kernel_(kKinds[kernel].name, padded)));
  }
  return found;
}

Handle Gpu::current_stream() const { return reinterpret_cast<Handle>(nb::cast<i64>(stream_())); }

}  // namespace tfgw::gpu

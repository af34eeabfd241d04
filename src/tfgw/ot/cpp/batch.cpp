#include "batch.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "parallel.hpp"

namespace tfgw {
namespace {

// Largest graphs first, so that no thread is still working on a large one at the end.
std::vector<int64_t> by_decreasing_size(const std::vector<Graph>& graphs) {
  std::vector<int64_t> order(graphs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return graphs[a].n > graphs[b].n; });
  return order;
}

// Each thread keeps its solver's buffers for the next call, because allocating them takes a quarter of the time of a
// single small graph. Buffers of large graphs are released.
constexpr int64_t kKeptEntries = 1 << 14;
const std::shared_ptr<FgwSolver>& kept_solver() {
  thread_local const std::shared_ptr<FgwSolver> solver = std::make_shared<FgwSolver>();
  return solver;
}

// Calls solve_pair(solver, graph, template) for all pairs in parallel. Returns false if interrupted.
template <class SolvePair>
bool each_pair(const PreparedBatch& batch, int threads, Interrupt& interrupt, SolvePair solve_pair) {
  const std::vector<Graph>& graphs = batch.graphs;
  const std::vector<int64_t> order = by_decreasing_size(graphs);
  const int64_t K = batch.templates_input.count;
  const bool small = order.empty() || graphs[order[0]].n * batch.templates_input.nodes <= kKeptEntries;
  const auto make_worker = [&] {
    const std::shared_ptr<FgwSolver> solver = small ? kept_solver() : std::make_shared<FgwSolver>();
    return [&, solver](int64_t item) {
      if (!interrupt.poll()) solve_pair(*solver, order[item / K], item % K);
    };
  };
  parallel_for(int64_t(graphs.size()) * K, threads, make_worker, [&] { interrupt.poll(); });
  return !interrupt.stopped();
}

// Profiles of graphs or templates, if a bound is requested.
template <class Structured>
std::vector<StructureProfiles> profiles(const std::vector<Structured>& all, bool requested) {
  std::vector<StructureProfiles> found(requested ? all.size() : 0);
  for (size_t i = 0; i < found.size(); ++i) found[i] = structure_profiles(all[i]);
  return found;
}

}  // namespace

bool solve_batch(const PreparedBatch& batch, const SolveOptions& options, const double* start, int threads,
                 Interrupt& interrupt, const SolveOutput& out) {
  const BatchInput& in = batch.graphs_input;
  const TemplatesInput& tin = batch.templates_input;
  const std::vector<Graph>& graphs = batch.graphs;
  const std::vector<Template>& templates = batch.templates;
  const int64_t K = tin.count, m = tin.nodes;
  const std::vector<StructureProfiles> graph_profiles = profiles(graphs, out.lower_bound);
  const std::vector<StructureProfiles> template_profiles = profiles(templates, out.lower_bound);

  const auto solve_pair = [&](FgwSolver& solver, int64_t b, int64_t k) {
    const Graph& graph = graphs[b];
    const int64_t pair = b * K + k, first = graph.first_node * K + k;
    PairResult result;
    result.status = Status::empty;
    if (graph.n > 0) {
      const double* from = start ? start + first * m : nullptr;
      const LinearCost linear{in.features, in.cost ? in.cost + first * m : nullptr, K * m};
      if (!solver.solve(graph, templates[k], linear, options, from, K * m, interrupt, result)) return;
      PairOutput pair_out;
      pair_out.plan = out.plans ? out.plans + pair : nullptr;
      pair_out.row_potential = out.row_potential ? out.row_potential + first : nullptr;
      pair_out.row_stride = K;
      pair_out.col_potential = out.col_potential ? out.col_potential + pair * m : nullptr;
      solver.write(tin, k, pair_out);
      if (out.local_minimum) out.local_minimum[pair] = solver.is_local_minimum(result);
      if (out.lower_bound &&
          !solver.lower_bound(graph_profiles[b], template_profiles[k], interrupt, out.lower_bound[pair]))
        return;
    } else if (out.col_potential) {
      std::fill_n(out.col_potential + pair * m, m, 0.0);
    }
    out.distance[pair] = result.distance;
    out.structure_cost[pair] = result.structure_cost;
    out.feature_cost[pair] = result.feature_cost;
    out.gap[pair] = result.gap;
    out.iterations[pair] = result.iterations;
    out.status[pair] = int32_t(result.status);
    if (out.spread) out.spread[pair] = result.spread;
  };

  return each_pair(batch, threads, interrupt, solve_pair);
}

bool assess_batch(const PreparedBatch& batch, const GivenSolution& given, int threads, Interrupt& interrupt,
                  double* lower_bound, int32_t* local_minimum) {
  const BatchInput& in = batch.graphs_input;
  const int64_t K = batch.templates_input.count, m = batch.templates_input.nodes;
  const std::vector<StructureProfiles> graph_profiles = profiles(batch.graphs, true);
  const std::vector<StructureProfiles> template_profiles = profiles(batch.templates, true);
  return each_pair(batch, threads, interrupt, [&](FgwSolver& solver, int64_t b, int64_t k) {
    const Graph& graph = batch.graphs[b];
    const int64_t pair = b * K + k, first = graph.first_node * K + k;
    if (graph.n == 0) return;
    solver.bind(graph, batch.templates[k], {in.features, in.cost ? in.cost + first * m : nullptr, K * m});
    solver.keep_given(given.plans + first * m, K * m);
    PairResult result;
    result.distance = given.distance[pair], result.status = Status(given.status[pair]);
    local_minimum[pair] = solver.is_local_minimum(result);
    solver.lower_bound(graph_profiles[b], template_profiles[k], interrupt, lower_bound[pair]);
  });
}

}  // namespace tfgw

#include "graph_set.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "parallel.hpp"

namespace tfgw {
namespace {

// Pairs without a solve per item of parallel work: a single one takes less time than scheduling an item.
constexpr int64_t kQuickPairsPerItem = 256;

}  // namespace

GraphSet::GraphSet(const BatchInput& in, double alpha, NodeCost node_cost, int threads, int64_t kept_entries)
    : in_(in), alpha_(alpha), node_cost_(node_cost), kept_entries_(kept_entries) {
  std::vector<Template> none;
  prepare(in_, TemplatesInput{0, 0, in_.features, nullptr, nullptr, nullptr, nullptr}, threads, graphs_, none);
  templates_.resize(graphs_.size());
  if (node_cost_ == NodeCost::hamming) nested_labels_ = NestedLabels::of(graphs_, in_.features);
}

int64_t GraphSet::entries(int64_t b) const {
  return in_.kind == StructureKind::none ? graphs_[b].n : int64_t(graphs_[b].n) * graphs_[b].n;
}

// This graph as a template, identical to a template of `fgw` with the graph's matrix as its structure.
Template GraphSet::as_template(int64_t b) const {
  const Graph& graph = graphs_[b];
  std::vector<double> structure;
  if (graph.kind == StructureKind::sparse) {
    structure.assign(size_t(graph.n) * graph.n, 0.0);
    graph.for_each_entry([&](int i, int j, double c) { structure[size_t(i) * graph.n + j] = c; });
  }
  const double* dense = graph.kind == StructureKind::dense ? graph.dense : structure.data();
  const TemplatesInput in{1,       graph.n, in_.features, graph.kind == StructureKind::none ? nullptr : dense,
                          graph.x, in_.weights + graph.first_node, &alpha_};
  return prepare_template(in, 0);
}

// Prepares templates that are not cached, and evicts others to make room.
void GraphSet::prepare_templates(const std::vector<int64_t>& needed, Purpose purpose, int threads) {
  std::vector<char> is_needed(graphs_.size(), 0);
  int64_t kept = 0;
  for (int64_t b : needed) is_needed[b] = 1;
  for (int64_t b = 0; b < size(); ++b)
    if (is_needed[b] || templates_[b]) kept += entries(b);
  for (int64_t b = 0; b < size() && kept > kept_entries_; ++b)
    if (templates_[b] && !is_needed[b]) kept -= entries(b), templates_[b].reset();
  const auto prepare_one = [&](int64_t item) {
    std::unique_ptr<AsTemplate>& found = templates_[needed[item]];
    if (!found) found.reset(new AsTemplate{as_template(needed[item]), {}, false});
    if (purpose == Purpose::solve || found->has_profiles) return;
    found->profiles = structure_profiles(found->prepared);
    found->has_profiles = true;
  };
  parallel_for(int64_t(needed.size()), threads, [&] { return prepare_one; }, [] {});
}

// Calls make_worker() once per thread, and the result with the index of each pair. Pairs are processed in groups whose
// templates fit in memory together; within a group, largest first, so that no thread is still working on a large one at
// the end.
template <class MakeWorker>
bool GraphSet::for_each_pair(const std::vector<GraphPair>& pairs, Purpose purpose, int threads, Interrupt& interrupt,
                             MakeWorker make_worker) {
  std::vector<int64_t> order(pairs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return pairs[a].tmpl < pairs[b].tmpl; });
  for (auto first = order.begin(); first != order.end() && !interrupt.stopped();) {
    std::vector<int64_t> needed;
    int64_t total = 0;
    auto last = first;
    for (; last != order.end(); ++last) {
      const int64_t tmpl = pairs[*last].tmpl;
      if (!needed.empty() && needed.back() == tmpl) continue;
      if (!needed.empty() && total + entries(tmpl) > kept_entries_) break;
      needed.push_back(tmpl);
      total += entries(tmpl);
    }
    prepare_templates(needed, purpose, threads);
    const auto work = [&](int64_t p) { return int64_t(graphs_[pairs[p].graph].n) * graphs_[pairs[p].tmpl].n; };
    std::stable_sort(first, last, [&](int64_t a, int64_t b) { return work(a) > work(b); });
    const auto make_polling_worker = [&] {
      return [&, worker = make_worker()](int64_t item) mutable {
        if (!interrupt.poll()) worker(first[item]);
      };
    };
    parallel_for(last - first, threads, make_polling_worker, [&] { interrupt.poll(); });
    first = last;
  }
  return !interrupt.stopped();
}

// Writes compute(pair) for each pair.
template <class Compute>
bool GraphSet::for_each_quick_pair(const std::vector<GraphPair>& pairs, int threads, Interrupt& interrupt,
                                   Compute compute, double* out) {
  const int64_t count = int64_t(pairs.size());
  const auto compute_some = [&](int64_t item) {
    if (interrupt.poll()) return;
    const int64_t last = std::min(count, (item + 1) * kQuickPairsPerItem);
    for (int64_t p = item * kQuickPairsPerItem; p < last; ++p) out[p] = compute(pairs[p]);
  };
  parallel_for((count + kQuickPairsPerItem - 1) / kQuickPairsPerItem, threads, [&] { return compute_some; },
               [&] { interrupt.poll(); });
  return !interrupt.stopped();
}

// Solves each pair and calls use(solver, result, index of the pair).
template <class Use>
bool GraphSet::solve_pairs(const std::vector<GraphPair>& pairs, const SolveOptions& options, int threads,
                           Interrupt& interrupt, Use use) {
  const auto make_worker = [&] {
    return [&, solver = std::make_shared<FgwSolver>(), costs = std::vector<double>()](int64_t p) mutable {
      const Graph& graph = graphs_[pairs[p].graph];
      const LinearCost linear = linear_cost(pairs[p], costs);
      PairResult result;
      if (solver->solve(graph, templates_[pairs[p].tmpl]->prepared, linear, options, nullptr, 0, interrupt, result))
        use(*solver, result, p);
    };
  };
  return for_each_pair(pairs, Purpose::solve, threads, interrupt, make_worker);
}

bool GraphSet::distances(const std::vector<GraphPair>& pairs, const SolveOptions& options, int threads,
                         Interrupt& interrupt, double* out) {
  if (nested_labels_) {
    const auto closed_form = [&](const GraphPair& pair) { return nested_labels_->distance(pair.tmpl, pair.graph); };
    return for_each_quick_pair(pairs, threads, interrupt, closed_form, out);
  }
  return solve_pairs(pairs, options, threads, interrupt,
                     [&](FgwSolver&, const PairResult& result, int64_t p) { out[p] = result.distance; });
}

bool GraphSet::details(const std::vector<GraphPair>& pairs, const SolveOptions& options, int threads,
                       Interrupt& interrupt, PairDetails* out) {
  const auto write = [&](FgwSolver& solver, const PairResult& result, int64_t p) {
    TemplatesInput shape{};
    shape.nodes = graphs_[pairs[p].tmpl].n;
    PairOutput plan;
    plan.plan = &out[p].plan;
    solver.write(shape, 0, plan);
    out[p].is_local_minimum = solver.is_local_minimum(result);
    out[p].result = result;
    // The same bits as from `distances`.
    if (nested_labels_) out[p].result.distance = nested_labels_->distance(pairs[p].tmpl, pairs[p].graph);
  };
  return solve_pairs(pairs, options, threads, interrupt, write);
}

// The cost between nodes of a pair. Costs that the solver does not compute from features are written to `costs`.
LinearCost GraphSet::linear_cost(const GraphPair& pair, std::vector<double>& costs) const {
  if (node_cost_ == NodeCost::squared_euclidean) return {in_.features, nullptr, 0};
  node_costs(pair, costs);
  return {in_.features, costs.data(), graphs_[pair.tmpl].n};
}

// The cost between each node of the graph and each node of the template, in input order.
void GraphSet::node_costs(const GraphPair& pair, std::vector<double>& out) const {
  const Graph &graph = graphs_[pair.graph], &tmpl = graphs_[pair.tmpl];
  const int64_t d = in_.features;
  out.resize(size_t(graph.n) * tmpl.n);
  for (int i = 0; i < graph.n; ++i)
    for (int k = 0; k < tmpl.n; ++k) {
      const double *f = graph.x + i * d, *g = tmpl.x + k * d;
      double sum = 0;
      for (int64_t c = 0; c < d; ++c)
        sum += node_cost_ == NodeCost::hamming ? double(f[c] != g[c]) : (f[c] - g[c]) * (f[c] - g[c]);
      out[size_t(i) * tmpl.n + k] = node_cost_ == NodeCost::hamming ? sum / double(std::max<int64_t>(d, 1)) : std::sqrt(sum);
    }
}

bool GraphSet::lower_bounds(const std::vector<GraphPair>& pairs, int threads, Interrupt& interrupt, double* out) {
  if (profiles_.empty()) {
    profiles_.resize(graphs_.size());
    const auto profile = [&](int64_t b) { profiles_[b] = structure_profiles(graphs_[b]); };
    parallel_for(size(), threads, [&] { return profile; }, [] {});
  }
  const auto make_worker = [&] {
    return [&, solver = std::make_shared<FgwSolver>(), costs = std::vector<double>()](int64_t p) mutable {
      const Graph& graph = graphs_[pairs[p].graph];
      const AsTemplate& tmpl = *templates_[pairs[p].tmpl];
      solver->bind(graph, tmpl.prepared, linear_cost(pairs[p], costs));
      solver->lower_bound(profiles_[pairs[p].graph], tmpl.profiles, interrupt, out[p]);
    };
  };
  return for_each_pair(pairs, Purpose::bound, threads, interrupt, make_worker);
}

bool GraphSet::marginal_bounds(const std::vector<GraphPair>& pairs, int threads, Interrupt& interrupt, double* out) {
  if (marginals_.empty()) {
    marginals_.resize(graphs_.size());
    const auto marginals_of = [&](int64_t b) { marginals_[b] = marginal_profiles(graphs_[b], in_.features); };
    parallel_for(size(), threads, [&] { return marginals_of; }, [] {});
  }
  const double alpha = in_.kind == StructureKind::none ? 0.0 : alpha_;
  const auto bound = [&](const GraphPair& pair) {
    return marginal_bound(marginals_[pair.tmpl], marginals_[pair.graph], alpha);
  };
  return for_each_quick_pair(pairs, threads, interrupt, bound, out);
}

}  // namespace tfgw

// A ragged set of graphs, each of which can be the template of any other. Each is prepared once, regardless of the
// number of its pairs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fgw.hpp"
#include "interrupt.hpp"
#include "lower_bound.hpp"
#include "nested_labels.hpp"
#include "problem.hpp"

namespace tfgw {

// One row of an array of pairs, (count, 2).
struct GraphPair {
  int64_t tmpl, graph;
};

// The solution of a pair, and what is known about its quality.
struct PairDetails {
  PairResult result;
  bool is_local_minimum = false;
  SparsePlan plan;  // row by row; columns are nodes of the template
};

enum class NodeCost { squared_euclidean, euclidean, hamming };  // the last two without structure only

class GraphSet {
 public:
  // Limit on the structure entries of all cached templates, unless a single one has more. Each has three matrices, so
  // this is 400 MB.
  static constexpr int64_t kKeptEntries = int64_t(1) << 24;

  // Points into the input, which must have been validated. Pairs must not refer to empty graphs.
  GraphSet(const BatchInput& in, double alpha, NodeCost node_cost, int threads, int64_t kept_entries = kKeptEntries);

  GraphSet(const GraphSet&) = delete;

  int64_t size() const { return int64_t(graphs_.size()); }

  // All write one value per pair, in the order of the pairs. They return false if interrupted.
  bool distances(const std::vector<GraphPair>& pairs, const SolveOptions& options, int threads, Interrupt& interrupt,
                 double* out);
  bool details(const std::vector<GraphPair>& pairs, const SolveOptions& options, int threads, Interrupt& interrupt,
               PairDetails* out);
  bool lower_bounds(const std::vector<GraphPair>& pairs, int threads, Interrupt& interrupt, double* out);
  bool marginal_bounds(const std::vector<GraphPair>& pairs, int threads, Interrupt& interrupt, double* out);

 private:
  enum class Purpose { solve, bound };
  struct AsTemplate {
    Template prepared;
    StructureProfiles profiles;  // after the first request for a bound
    bool has_profiles;
  };

  template <class MakeWorker>
  bool for_each_pair(const std::vector<GraphPair>& pairs, Purpose purpose, int threads, Interrupt& interrupt,
                     MakeWorker make_worker);
  void prepare_templates(const std::vector<int64_t>& needed, Purpose purpose, int threads);
  template <class Compute>
  bool for_each_quick_pair(const std::vector<GraphPair>& pairs, int threads, Interrupt& interrupt, Compute compute,
                           double* out);
  Template as_template(int64_t b) const;
  int64_t entries(int64_t b) const;  // stored for a template
  template <class Use>
  bool solve_pairs(const std::vector<GraphPair>& pairs, const SolveOptions& options, int threads, Interrupt& interrupt,
                   Use use);
  LinearCost linear_cost(const GraphPair& pair, std::vector<double>& costs) const;
  void node_costs(const GraphPair& pair, std::vector<double>& out) const;

  const BatchInput in_;
  const double alpha_;
  const NodeCost node_cost_;
  const int64_t kept_entries_;
  std::vector<Graph> graphs_;
  std::optional<NestedLabels> nested_labels_;           // if they give the distances in closed form
  std::vector<std::unique_ptr<AsTemplate>> templates_;  // null if not cached
  std::vector<StructureProfiles> profiles_;             // of the graphs, after the first request for a bound
  std::vector<Profiles> marginals_;                     // likewise
};

}  // namespace tfgw

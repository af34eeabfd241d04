// A ragged set of graphs, of which any can be the template of any other: each is prepared once, whatever the number of
// pairs that it is part of.
#pragma once

#include <memory>
#include <vector>

#include "fgw.hpp"
#include "interrupt.hpp"
#include "lower_bound.hpp"
#include "problem.hpp"

namespace tfgw {

// One row of an array of pairs, (count, 2).
struct GraphPair {
  int64_t tmpl, graph;
};

enum class NodeCost { squared_euclidean, euclidean, hamming };  // the last two without structure only

class GraphSet {
 public:
  // Entries of the structures of all templates that are kept at a time, unless a single one has more; each has three
  // matrices, so this is 400 MB.
  static constexpr int64_t kKeptEntries = int64_t(1) << 24;

  // Points into the input, which has been validated; pairs are of graphs that are not empty.
  GraphSet(const BatchInput& in, double alpha, NodeCost node_cost, int threads, int64_t kept_entries = kKeptEntries);

  GraphSet(const GraphSet&) = delete;

  int64_t size() const { return int64_t(graphs_.size()); }

  // All write one value per pair, in the order of the pairs. False if interrupted.
  bool distances(const std::vector<GraphPair>& pairs, const SolveOptions& options, int threads, Interrupt& interrupt,
                 double* out);
  bool lower_bounds(const std::vector<GraphPair>& pairs, int threads, Interrupt& interrupt, double* out);
  bool marginal_bounds(const std::vector<GraphPair>& pairs, int threads, Interrupt& interrupt, double* out);

 private:
  enum class Purpose { solve, bound };
  struct AsTemplate {
    Template prepared;
    StructureProfiles profiles;  // once a bound was asked for
    bool has_profiles;
  };

  template <class MakeWorker>
  bool for_each_pair(const std::vector<GraphPair>& pairs, Purpose purpose, int threads, Interrupt& interrupt,
                     MakeWorker make_worker);
  void prepare_templates(const std::vector<int64_t>& needed, Purpose purpose, int threads);
  Template as_template(int64_t b) const;
  int64_t entries(int64_t b) const;  // that are kept of a template
  void node_costs(const GraphPair& pair, std::vector<double>& out) const;

  const BatchInput in_;
  const double alpha_;
  const NodeCost node_cost_;
  const int64_t kept_entries_;
  std::vector<Graph> graphs_;
  std::vector<std::unique_ptr<AsTemplate>> templates_;  // those that are kept
  std::vector<StructureProfiles> profiles_;             // of the graphs, once a bound was asked for
  std::vector<Profiles> marginals_;                     // likewise
};

}  // namespace tfgw

// Problems decoded from bytes: random ones for the tests, a fuzzer's for the fuzz target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "batch.hpp"

namespace tfgw::test {

// Numbers from a string of bytes; zeros once it is used up.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  int byte() { return at_ < size_ ? data_[at_++] : 0; }
  int below(int end) { return (byte() * 256 + byte()) % end; }
  bool one_in(int n) { return below(n) == n - 1; }
  double unit() { return (byte() + 256 * byte()) / 65536.0; }  // in [0, 1)

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

// What kind of numbers a problem has.
enum class Values {
  continuous,  // no ties
  tied,        // small integers
  extreme      // any finite double
};

struct RandomProblem {
  Values values;
  std::vector<int64_t> batch, ptr, edge_index;
  std::vector<double> x, weights, edge_weight, dense, cost, start;
  std::vector<double> template_structure, template_x, template_weights, alpha;
  StructureKind kind;
  int64_t templates, template_nodes, features;
  SolveOptions options;
  int threads;

  BatchInput graphs_input() const;
  TemplatesInput templates_input() const;
  int64_t graphs() const { return int64_t(ptr.size()) - 1; }
  int64_t nodes() const { return int64_t(batch.size()); }
};

// Outputs of a solve, with room for everything.
struct Solved {
  std::vector<double> distance, structure_cost, feature_cost, gap, row_potential, col_potential;
  std::vector<int32_t> iterations, status;
  std::vector<SparsePlan> plans;

  explicit Solved(const RandomProblem& problem);
  SolveOutput output();
  SolvedPairs pairs() const;
  std::vector<double> dense_plans(const RandomProblem& problem) const;  // (nodes, templates, template nodes)
};

// Outputs of a backward pass.
struct Gradients {
  std::vector<double> x, weights, structure, template_structure, template_x, template_weights, alpha;

  explicit Gradients(const RandomProblem& problem);
  GradientOutput output();
};

RandomProblem make_problem(Bytes& bytes, Values values);

// Replaces a few numbers by arbitrary ones: NaN, negative weights, edges that lead nowhere.
void spoil(RandomProblem& problem, Bytes& bytes);

}  // namespace tfgw::test

#include "validate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "rules.cuh"

namespace tfgw {
namespace {

// Does not use a stream: if this library has its own copy of the C++ runtime, as with some compilers by default,
// streams find their locale in PyTorch's copy, and print nothing or crash.
std::string text(const char* part) { return part; }
std::string text(int64_t part) { return std::to_string(part); }
std::string text(double part) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.7g", part);  // enough digits that a rejected sum does not print as 1
  return digits;
}

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw std::invalid_argument((text(parts) + ...));
}

constexpr const char* kUnusable = " that is not finite or beyond 1e100";

// Index of the first value that is not finite or too large, or `count`.
int64_t first_unusable(const double* values, int64_t count) {
  int found = 0;  // a loop without a branch, because invalid values are rare
  for (int64_t i = 0; i < count; ++i) found |= !usable(values[i]);
  int64_t i = found ? 0 : count;
  while (i < count && usable(values[i])) ++i;
  return i;
}

void check_weights(const char* argument, const char* owner, int64_t index, const double* weights, int64_t count,
                   double tolerance) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(weights[i])) fail(argument, ": ", owner, " ", index, " has a weight that is not finite (node ", i, ")");
    if (weights[i] < 0) fail(argument, ": ", owner, " ", index, " has a negative weight, ", weights[i], " (node ", i, ")");
    total += weights[i];
  }
  if (total == 0) fail(argument, ": the weights of ", owner, " ", index, " are all zero");
  if (!sums_to_one(total, tolerance)) fail(argument, ": the weights of ", owner, " ", index, " sum to ", total, ", not 1");
}

void check_edges(const BatchInput& in) {
  std::vector<int64_t> graph_of(in.nodes);
  for (int64_t b = 0; b < in.graphs; ++b)
    for (int64_t i = in.ptr[b]; i < in.ptr[b + 1]; ++i) graph_of[i] = b;
  for (int64_t e = 0; e < in.edges; ++e) {
    const int64_t from = in.edge_index[e], to = in.edge_index[in.edges + e];
    if (from < 0 || to < 0 || from >= in.nodes || to >= in.nodes)
      fail("edge_index: edge ", e, " (", from, " -> ", to, ") is out of range for ", in.nodes, " nodes");
    if (graph_of[from] != graph_of[to])
      fail("edge_index: edge ", e, " (", from, " -> ", to, ") joins graph ", graph_of[from], " and graph ",
           graph_of[to]);
    if (in.edge_weight && !usable(in.edge_weight[e]))
      fail("edge_weight: graph ", graph_of[from], " has a weight", kUnusable, " (edge ", e, ")");
  }
}

}  // namespace

std::vector<int64_t> graph_offsets(const int64_t* batch, int64_t nodes, int64_t graphs) {
  // Checked first, because unsorted nodes make other graphs look empty.
  if (const int64_t* const unsorted = std::is_sorted_until(batch, batch + nodes); unsorted != batch + nodes)
    fail("batch: must be sorted, but node ", unsorted - batch, " of graph ", *unsorted, " comes after a node of graph ",
         unsorted[-1]);
  std::vector<int64_t> ptr(graphs + 1, nodes);
  int64_t last = -1;
  for (int64_t i = 0; i < nodes; ++i) {
    const int64_t b = batch[i];
    if (b < 0 || b >= graphs) fail("batch: node ", i, " belongs to graph ", b, ", but there are ", graphs, " graphs");
    if (b > last + 1) fail("batch: graph ", last + 1, " has no nodes");
    if (b != last) ptr[last = b] = i;
  }
  return ptr;
}

void validate(const BatchInput& in, double weight_tolerance) {
  int64_t offset = 0;
  for (int64_t b = 0; b < in.graphs; ++b) {
    const int64_t first = in.ptr[b], n = in.ptr[b + 1] - first;
    if (n == 0) continue;
    const int64_t bad = first_unusable(in.x + first * in.features, n * in.features);
    if (bad < n * in.features) fail("x: graph ", b, " has a feature", kUnusable, " (node ", bad / in.features, ")");
    check_weights("node_weights", "graph", b, in.weights + first, n, weight_tolerance);
    if (in.kind == StructureKind::dense && first_unusable(in.dense + offset, n * n) < n * n)
      fail("structure: graph ", b, " has an entry", kUnusable);
    offset += n * n;
  }
  if (in.kind == StructureKind::sparse) check_edges(in);
}

void validate_rows(const char* argument, const double* rows, int64_t columns, const BatchInput& in) {
  if (!rows) return;
  const int64_t bad = first_unusable(rows, in.nodes * columns);
  if (bad == in.nodes * columns) return;
  const int64_t node = bad / columns;
  int64_t graph = 0;
  while (in.ptr[graph + 1] <= node) ++graph;
  fail(argument, ": graph ", graph, " has an entry", kUnusable, " (node ", node, ")");
}

void validate(const TemplatesInput& in, double weight_tolerance) {
  const int64_t m = in.nodes;
  for (int64_t k = 0; k < in.count; ++k) {
    if (in.structure && first_unusable(in.structure + k * m * m, m * m) < m * m)
      fail("template_structure: template ", k, " has an entry", kUnusable);
    if (first_unusable(in.x + k * m * in.features, m * in.features) < m * in.features)
      fail("template_features: template ", k, " has a feature", kUnusable);
    check_weights("template_weights", "template", k, in.weights + k * m, m, weight_tolerance);
    if (!is_alpha(in.alpha[k])) fail("alpha: must lie in [0, 1], but is ", in.alpha[k], " for template ", k);
  }
}

}  // namespace tfgw

#include "nested_labels.hpp"

#include <algorithm>
#include <cmath>

namespace tfgw {
namespace {

// The number of each node's label among all labels of a column, in ascending order.
std::vector<int32_t> numbered(const std::vector<Graph>& graphs, int64_t columns, int64_t column) {
  std::vector<double> values;
  for (const Graph& graph : graphs)
    for (int i = 0; i < graph.n; ++i) values.push_back(graph.x[i * columns + column]);
  std::vector<double> labels = values;
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  std::vector<int32_t> numbers(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    numbers[i] = int32_t(std::lower_bound(labels.begin(), labels.end(), values[i]) - labels.begin());
  return numbers;
}

// Whether nodes with the same label also have the same label in the column before.
bool is_refinement(const std::vector<int32_t>& labels, const std::vector<int32_t>& before) {
  std::vector<int32_t> parent(labels.size(), -1);
  for (size_t i = 0; i < labels.size(); ++i) {
    int32_t& found = parent[labels[i]];
    if (found >= 0 && found != before[i]) return false;
    found = before[i];
  }
  return true;
}

}  // namespace

std::optional<NestedLabels> NestedLabels::of(const std::vector<Graph>& graphs, int64_t columns) {
  std::vector<std::vector<int32_t>> labels;
  for (int64_t c = 0; c < columns; ++c) {
    labels.push_back(numbered(graphs, columns, c));
    if (c > 0 && !is_refinement(labels[c], labels[c - 1])) return std::nullopt;
  }
  NestedLabels found;
  found.columns_ = columns;
  found.ptr_.push_back(0);
  std::vector<Share> nodes;
  size_t first = 0;
  for (const Graph& graph : graphs) {
    for (const std::vector<int32_t>& column : labels) {
      nodes.clear();
      for (int i = 0; i < graph.n; ++i) nodes.push_back({column[first + i], graph.h[i]});
      std::stable_sort(nodes.begin(), nodes.end(), [](const Share& a, const Share& b) { return a.label < b.label; });
      for (const Share& node : nodes) {
        const bool is_new = int64_t(found.shares_.size()) == found.ptr_.back() || found.shares_.back().label != node.label;
        if (is_new) found.shares_.push_back({node.label, 0.0});
        found.shares_.back().mass += node.mass;
      }
      found.ptr_.push_back(int64_t(found.shares_.size()));
    }
    first += size_t(graph.n);
  }
  return found;
}

double NestedLabels::distance(int64_t a, int64_t b) const {
  double sum = 0;
  for (int64_t c = 0; c < columns_; ++c) {
    const Share *p = &shares_[ptr_[a * columns_ + c]], *p_end = p + (ptr_[a * columns_ + c + 1] - ptr_[a * columns_ + c]);
    const Share *q = &shares_[ptr_[b * columns_ + c]], *q_end = q + (ptr_[b * columns_ + c + 1] - ptr_[b * columns_ + c]);
    while (p != p_end && q != q_end) {
      const int32_t left = p->label, right = q->label;
      sum += std::fabs((left <= right ? p->mass : 0.0) - (right <= left ? q->mass : 0.0));
      p += left <= right;
      q += right <= left;
    }
    for (; p != p_end; ++p) sum += p->mass;
    for (; q != q_end; ++q) sum += q->mass;
  }
  return columns_ ? sum / double(2 * columns_) : 0.0;
}

}  // namespace tfgw

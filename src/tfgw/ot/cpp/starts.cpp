#include "starts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels.hpp"

namespace tfgw {
namespace {

struct Link {
  int from = -1, to = -1;
};

// Index in [0, count) of the element at `rank` when all are sorted by `key`; ties by index.
template <class Key>
int at_rank(int count, int rank, Key key) {
  std::vector<std::pair<double, int>> order(count);
  for (int i = 0; i < count; ++i) order[i] = {key(i), i};
  std::nth_element(order.begin(), order.begin() + rank, order.end());
  return order[rank].second;
}

Link template_link(const Template& t, const Pin& pin) {
  const auto strength = [&](int a, int b) { return a == b ? 0.0 : std::abs(t.mean[size_t(a) * t.ld + b]); };
  const auto total = [&](int a) {
    double sum = 0;
    for (int b = 0; b < t.m; ++b) sum += strength(a, b) * t.h[b];
    return sum;
  };
  Link link;
  link.from = at_rank(t.m, pin.template_rank % t.m, [&](int a) { return -total(a); });
  const int to = at_rank(t.m, std::min(pin.link, t.m - 1), [&](int b) { return -strength(link.from, b); });
  if (strength(link.from, to) > 0) link.to = to;
  return link;
}

// A link of the graph that resembles the template's, by features and by how strongly its nodes are tied to the rest.
Link graph_link(const Graph& g, const Template& t, double alpha, const Matrix& feature_cost,
                const Link& target, const Pin& pin) {
  const auto mismatch = [&](int i, int k) {
    return node_mismatch(feature_cost[size_t(i) * t.ld + k], alpha, g.out_mean[i] + g.in_mean[i],
                         t.out_mean[k] + t.in_mean[k]);
  };
  Link link;
  link.from = at_rank(g.n, pin.graph_rank % g.n, [&](int i) { return mismatch(i, target.from); });
  if (target.to < 0) return link;
  g.for_each_entry([&](int i, int j, double c) {
    const int other = i == link.from ? j : j == link.from ? i : -1;
    if (c == 0 || other < 0 || other == link.from) return;
    if (link.to < 0 || mismatch(other, target.to) < mismatch(link.to, target.to)) link.to = other;
  });
  return link;
}

// Calls sample(s, values) with the distribution of a random walk from `anchor` after some of its steps, scaled to a
// maximum of 1. `step` adds (A + Aᵀ) times its first argument to the second.
template <class Step, class Sample>
void walk(int nodes, int anchor, Step step, Sample sample) {
  std::vector<double> now(nodes, 0.0), next(nodes);
  now[anchor] = 1.0;
  for (int t = 0;; ++t) {
    const int s = sample_after(t);
    if (s >= 0) sample(s, now);
    if (s == kWalkSamples - 1) return;
    std::fill(next.begin(), next.end(), 0.0);
    step(now, next);
    double peak = 0;
    for (double v : next) peak = std::max(peak, std::abs(v));
    if (peak == 0) peak = 1;
    for (int j = 0; j < nodes; ++j) now[j] = next[j] / peak;
  }
}

}  // namespace

SparsePlan round_to_marginals(const Graph& graph, const Template& tmpl, const double* start, int64_t stride) {
  const int n = graph.n, m = tmpl.m;
  std::vector<double> T(size_t(n) * m), row_left(n), col_left(m);
  const auto at = [&](int i, int k) -> double& { return T[size_t(i) * m + k]; };
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int k = 0; k < m; ++k) sum += at(i, k) = std::max(0.0, start[i * stride + tmpl.live[k]]);
    const double shrink = sum > graph.h[i] ? graph.h[i] / sum : 1.0;
    for (int k = 0; k < m; ++k) at(i, k) *= shrink;
  }
  for (int k = 0; k < m; ++k) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += at(i, k);
    const double shrink = sum > tmpl.h[k] ? tmpl.h[k] / sum : 1.0;
    for (int i = 0; i < n; ++i) at(i, k) *= shrink;
    col_left[k] = std::max(0.0, tmpl.h[k] - sum * shrink);
  }
  double missing = 0;
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int k = 0; k < m; ++k) sum += at(i, k);
    missing += row_left[i] = std::max(0.0, graph.h[i] - sum);
  }
  SparsePlan plan;
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < m; ++k) {
      const double w = at(i, k) + (missing > 0 ? row_left[i] * col_left[k] / missing : 0.0);
      if (w > 0) plan.push(i, k, w);
    }
  return plan;
}

void anchored_cost(const Graph& graph, const Template& tmpl, double alpha, const Matrix& feature_cost,
                   int index, Matrix& cost) {
  const int n = graph.n, m = tmpl.m, ld = tmpl.ld;
  const Pin chosen = pin(index);
  const Link to = template_link(tmpl, chosen), from = graph_link(graph, tmpl, alpha, feature_cost, to, chosen);
  const int anchors = from.to < 0 || to.to < 0 ? 1 : 2, width = anchors * kWalkSamples;
  std::vector<double> graph_signature(size_t(n) * width);
  Matrix template_signature(size_t(width) * ld, 0.0);
  for (int a = 0; a < anchors; ++a) {
    const auto graph_step = [&](const std::vector<double>& in, std::vector<double>& out) {
      graph.for_each_entry([&](int i, int j, double c) { out[i] += c * in[j], out[j] += c * in[i]; });
    };
    const auto template_step = [&](const std::vector<double>& in, std::vector<double>& out) {
      for (int b = 0; b < m; ++b) kernels().axpy(m, 2 * in[b], &tmpl.mean[size_t(b) * ld], out.data());
    };
    walk(n, a == 0 ? from.from : from.to, graph_step, [&](int s, const std::vector<double>& values) {
      for (int i = 0; i < n; ++i) graph_signature[size_t(i) * width + a * kWalkSamples + s] = values[i];
    });
    walk(m, a == 0 ? to.from : to.to, template_step, [&](int s, const std::vector<double>& values) {
      std::copy(values.begin(), values.end(), &template_signature[size_t(a * kWalkSamples + s) * ld]);
    });
  }
  cost.resize(feature_cost.size());
  kernels().squared_distances(n, ld, width, 1.0, graph_signature.data(), template_signature.data(), cost.data());
  const double scale = walk_scale(alpha, kernels().largest_magnitude(n, m, ld, feature_cost.data()));
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < ld; ++k) {
      const size_t e = size_t(i) * ld + k;
      cost[e] = k < m ? feature_cost[e] + scale * cost[e] : kPadCost;
    }
}

}  // namespace tfgw

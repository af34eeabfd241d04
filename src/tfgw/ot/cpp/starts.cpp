#include "starts.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "kernels.hpp"

namespace tfgw {
namespace {

constexpr int kWalkLength = 8;
constexpr int kLinksPerNode = 4;

using Apply = std::function<void(const std::vector<double>&, std::vector<double>&)>;  // out = (A + Aᵀ) in

// Node signatures: after t = 0 … kWalkLength steps from `anchor`, where a walker is, scaled to a largest value of 1.
std::vector<double> walk_signature(int nodes, int anchor, const Apply& step) {
  std::vector<double> signature, now(nodes, 0.0), next(nodes);
  now[anchor] = 1.0;
  for (int t = 0; t <= kWalkLength; ++t) {
    signature.insert(signature.end(), now.begin(), now.end());
    std::fill(next.begin(), next.end(), 0.0);
    step(now, next);
    double peak = 0;
    for (double v : next) peak = std::max(peak, std::abs(v));
    if (peak == 0) peak = 1;
    for (int j = 0; j < nodes; ++j) now[j] = next[j] / peak;
  }
  return signature;  // (kWalkLength + 1, nodes)
}

struct Link {
  int from = -1, to = -1;
};

Link template_link(const Template& t, int index) {
  const auto link = [&](int a, int b) { return a == b ? 0.0 : std::abs(t.mean[size_t(a) * t.ld + b]); };
  std::vector<double> strength(t.m, 0.0);
  for (int a = 0; a < t.m; ++a)
    for (int b = 0; b < t.m; ++b) strength[a] += link(a, b) * t.h[b];
  std::vector<int> order(t.m);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strength[a] > strength[b]; });
  const int from = order[index / kLinksPerNode % t.m];
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return link(from, a) > link(from, b); });
  const int to = order[std::min(index % kLinksPerNode, t.m - 1)];
  return {from, link(from, to) > 0 ? to : -1};
}

// The graph's link most like the template's: by features and by how strongly nodes are tied to the rest.
Link graph_link(const Graph& g, const Template& t, double alpha, const std::vector<double>& feature_cost,
                const Link& target) {
  const auto mismatch = [&](int i, int k) {
    const double degree = 0.5 * (g.out_mean[i] + g.in_mean[i] - t.out_mean[k] - t.in_mean[k]);
    return feature_cost[size_t(i) * t.ld + k] + alpha * degree * degree;
  };
  Link best;
  for (int i = 0; i < g.n; ++i)
    if (best.from < 0 || mismatch(i, target.from) < mismatch(best.from, target.from)) best.from = i;
  if (target.to < 0) return best;
  g.for_each_entry([&](int i, int j, double c) {
    const int other = i == best.from ? j : j == best.from ? i : -1;
    if (c == 0 || other < 0 || other == best.from) return;
    if (best.to < 0 || mismatch(other, target.to) < mismatch(best.to, target.to)) best.to = other;
  });
  return best;
}

void add_signature_cost(const std::vector<double>& graph, const std::vector<double>& tmpl, int n, int m, int ld,
                        double scale, std::vector<double>& cost) {
  for (int t = 0; t <= kWalkLength; ++t)
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < m; ++k) {
        const double diff = graph[size_t(t) * n + i] - tmpl[size_t(t) * m + k];
        cost[size_t(i) * ld + k] += scale * diff * diff;
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

void anchored_cost(const Graph& graph, const Template& tmpl, double alpha, const std::vector<double>& feature_cost,
                   int index, std::vector<double>& cost) {
  const int n = graph.n, m = tmpl.m, ld = tmpl.ld;
  cost = feature_cost;
  const double largest = kernels().largest_magnitude(n, m, ld, cost.data());
  const double scale = alpha * (largest > 0 ? largest : 1.0);
  const Apply graph_step = [&](const std::vector<double>& in, std::vector<double>& out) {
    graph.for_each_entry([&](int i, int j, double c) { out[i] += c * in[j], out[j] += c * in[i]; });
  };
  const Apply template_step = [&](const std::vector<double>& in, std::vector<double>& out) {
    for (int a = 0; a < m; ++a)
      for (int b = 0; b < m; ++b) out[a] += 2 * tmpl.mean[size_t(a) * ld + b] * in[b];
  };
  const Link to = template_link(tmpl, index), from = graph_link(graph, tmpl, alpha, feature_cost, to);
  add_signature_cost(walk_signature(n, from.from, graph_step), walk_signature(m, to.from, template_step), n, m, ld,
                     scale, cost);
  if (from.to < 0 || to.to < 0) return;
  add_signature_cost(walk_signature(n, from.to, graph_step), walk_signature(m, to.to, template_step), n, m, ld,
                     scale, cost);
}

}  // namespace tfgw

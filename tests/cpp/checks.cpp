#include "checks.hpp"

#include <algorithm>
#include <cmath>

namespace tfgw::test {
namespace {

constexpr int64_t kBruteForce = 2'000'000;  // terms of equation 1 that are still summed one by one

// One pair, with its structure as dense matrices.
struct Pair {
  int64_t n, m, first, b, k;
  double alpha;
  std::vector<double> C, C_bar, M, T;
};

std::vector<double> dense_structure(const RandomProblem& p, int64_t b) {
  const int64_t n = p.ptr[b + 1] - p.ptr[b], edges = int64_t(p.edge_index.size()) / 2;
  std::vector<double> C(n * n, 0.0);
  for (int64_t e = 0; e < edges; ++e) {
    const int64_t i = p.edge_index[e] - p.ptr[b], j = p.edge_index[edges + e] - p.ptr[b];
    if (i < 0 || i >= n) continue;
    if (!p.edge_weight.empty())
      C[i * n + j] += p.edge_weight[e];
    else if (i != j)  // without weights, edges are a set, without loops
      C[i * n + j] = 1;
  }
  if (p.kind != StructureKind::dense) return C;
  int64_t offset = 0;
  for (int64_t a = 0; a < b; ++a) offset += (p.ptr[a + 1] - p.ptr[a]) * (p.ptr[a + 1] - p.ptr[a]);
  std::copy_n(p.dense.begin() + offset, n * n, C.begin());
  return C;
}

Pair make_pair(const RandomProblem& p, const Solved& s, int64_t b, int64_t k) {
  Pair pair{p.ptr[b + 1] - p.ptr[b], p.template_nodes, p.ptr[b], b, k, p.alpha[k], {}, {}, {}, {}};
  const int64_t m = pair.m, d = p.features;
  pair.C = dense_structure(p, b);
  pair.C_bar.assign(m * m, 0.0);
  if (p.kind == StructureKind::none) pair.alpha = 0;
  if (!p.template_structure.empty()) std::copy_n(p.template_structure.begin() + k * m * m, m * m, pair.C_bar.begin());
  for (int64_t i = 0; i < pair.n; ++i)
    for (int64_t l = 0; l < m; ++l) {
      const int64_t entry = ((pair.first + i) * p.templates + k) * m + l;
      double cost = p.cost.empty() ? 0.0 : p.cost[entry];
      for (int64_t c = 0; c < d && p.cost.empty(); ++c) {
        const double difference = p.x[(pair.first + i) * d + c] - p.template_x[(k * m + l) * d + c];
        cost += difference * difference;
      }
      pair.M.push_back(cost);
    }
  pair.T.assign(pair.n * m, 0.0);
  const SparsePlan& plan = s.plans[b * p.templates + k];
  for (int e = 0; e < plan.count(); ++e) pair.T[plan.row[e] * m + plan.col[e]] = plan.mass[e];
  return pair;
}

void check_marginals(const RandomProblem& p, const Pair& pair) {
  for (int64_t i = 0; i < pair.n; ++i) {
    double sum = 0;
    for (int64_t l = 0; l < pair.m; ++l) {
      CHECK(pair.T[i * pair.m + l] >= 0);
      sum += pair.T[i * pair.m + l];
    }
    CHECK(std::abs(sum - p.weights[pair.first + i]) < 1e-12);
  }
  for (int64_t l = 0; l < pair.m; ++l) {
    double sum = 0;
    for (int64_t i = 0; i < pair.n; ++i) sum += pair.T[i * pair.m + l];
    CHECK(std::abs(sum - p.template_weights[pair.k * pair.m + l]) < 1e-12);
  }
}

// Equation 1 and its gradient, term by term.
double value_and_gradient(const Pair& pair, std::vector<double>& gradient) {
  const int64_t n = pair.n, m = pair.m;
  double value = 0;
  gradient.assign(n * m, 0.0);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < m; ++k) {
      const double T = pair.T[i * m + k];
      value += (1 - pair.alpha) * pair.M[i * m + k] * T;
      gradient[i * m + k] += (1 - pair.alpha) * pair.M[i * m + k];
      for (int64_t j = 0; j < n; ++j)
        for (int64_t l = 0; l < m; ++l) {
          const double forth = pair.C[i * n + j] - pair.C_bar[k * m + l];
          const double back = pair.C[j * n + i] - pair.C_bar[l * m + k];
          value += pair.alpha * forth * forth * T * pair.T[j * m + l];
          gradient[i * m + k] += pair.alpha * (forth * forth + back * back) * pair.T[j * m + l];
        }
    }
  return value;
}

void check_optimality(const RandomProblem& p, const Solved& s, const Pair& pair) {
  std::vector<double> G;
  const double value = value_and_gradient(pair, G);
  const int64_t index = pair.b * p.templates + pair.k;
  double scale = 1;
  for (double g : G) scale = std::max(scale, std::abs(g));
  CHECK(std::abs(s.distance[index] - value) < 1e-11 * scale);
  CHECK(s.gap[index] >= 0);
  if (s.status[index] != int32_t(Status::converged)) return;
  CHECK(s.gap[index] <= 1e-9 * std::abs(value) + 1e-12 * scale);
  for (int64_t i = 0; i < pair.n; ++i)
    for (int64_t l = 0; l < pair.m; ++l) {
      const double u = s.row_potential[(pair.first + i) * p.templates + pair.k];
      const double v = s.col_potential[index * pair.m + l];
      CHECK(G[i * pair.m + l] - u - v > -1e-10 * scale);
    }
}

}  // namespace

void check_solved(const RandomProblem& p, const Solved& s) {
  for (int64_t b = 0; b < p.graphs(); ++b)
    for (int64_t k = 0; k < p.templates; ++k) {
      const Pair pair = make_pair(p, s, b, k);
      const int32_t status = s.status[b * p.templates + k];
      CHECK((status == int32_t(Status::empty)) == (pair.n == 0));
      if (pair.n == 0) continue;
      CHECK(status == int32_t(Status::converged) || status == int32_t(Status::max_iter));
      CHECK(s.iterations[b * p.templates + k] <= p.options.max_iter);
      check_marginals(p, pair);
      if (p.values != Values::extreme && pair.n * pair.n * pair.m * pair.m <= kBruteForce) check_optimality(p, s, pair);
    }
}

void check_gradients(const RandomProblem& p, const Solved& s, const Gradients& g) {
  if (p.values == Values::extreme) return;
  for (const std::vector<double>* part :
       {&g.x, &g.weights, &g.structure, &g.template_structure, &g.template_x, &g.template_weights, &g.alpha})
    for (double v : *part) CHECK(std::isfinite(v));
  for (int64_t k = 0; k < p.templates; ++k) {
    double expected = 0, scale = 1;
    for (int64_t b = 0; b < p.graphs(); ++b) {
      const int64_t pair = b * p.templates + k;
      expected += s.structure_cost[pair] - s.feature_cost[pair];
      scale += std::abs(s.structure_cost[pair]) + std::abs(s.feature_cost[pair]);
    }
    CHECK(std::abs(g.alpha[k] - expected) < 1e-12 * scale);
  }
}

}  // namespace tfgw::test

#include "exchange.hpp"

#include <algorithm>
#include <numeric>

#include "start_rules.cuh"

namespace tfgw {
namespace {

// Entries of a plan by row: those of row i are order[first[i]] … order[first[i + 1] − 1].
struct ByRow {
  ByRow(const SparsePlan& plan, int rows) : first(rows + 1, 0), order(plan.count()) {
    for (int32_t i : plan.row) ++first[i + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<int> fill(first.begin(), first.end() - 1);
    for (int e = 0; e < plan.count(); ++e) order[fill[plan.row[e]]++] = e;
  }
  std::vector<int> first, order;
};

}  // namespace

Exchange best_exchange(const Graph& graph, const Template& tmpl, double alpha, const Matrix& gradient,
                       const SparsePlan& plan, double least) {
  const ByRow rows(plan, graph.n);
  std::vector<double> diagonal(graph.n, 0.0);
  graph.for_each_entry([&](int i, int j, double c) {
    if (i == j) diagonal[i] = c;
  });
  const auto slope = [&](int i, int j, int k, int l) {
    const double* to_i = &gradient[size_t(i) * tmpl.ld];
    const double* to_j = &gradient[size_t(j) * tmpl.ld];
    return to_i[l] + to_j[k] - to_i[k] - to_j[l];
  };
  const auto b = [&](int k, int l) {
    const double* mean = tmpl.mean.data();
    return mean[size_t(k) * tmpl.ld + k] + mean[size_t(l) * tmpl.ld + l] - 2 * mean[size_t(k) * tmpl.ld + l];
  };
  Exchange best;
  best.change = -least;
  graph.for_each_entry([&](int i, int j, double c) {
    if (i == j || (graph.symmetric && j < i)) return;
    const double a = diagonal[i] + diagonal[j] - c - (graph.symmetric ? c : graph.at(j, i));
    for (int p = rows.first[i]; p < rows.first[i + 1]; ++p)
      for (int q = rows.first[j]; q < rows.first[j + 1]; ++q) {
        const int e = rows.order[p], f = rows.order[q];
        const double t = std::min(plan.mass[e], plan.mass[f]);
        const double change = exchange_change(t, slope(i, j, plan.col[e], plan.col[f]), alpha, a,
                                              b(plan.col[e], plan.col[f]));
        if (change < best.change) best = {e, f, change};
      }
  });
  return best;
}

void apply(const Exchange& exchange, SparsePlan& plan) {
  const int e = exchange.first, f = exchange.second;
  const double t = std::min(plan.mass[e], plan.mass[f]);
  const auto add = [&](int32_t i, int32_t k) {  // each cell has one entry, so that later exchanges see all of its mass
    for (int at = 0; at < plan.count(); ++at)
      if (plan.row[at] == i && plan.col[at] == k) return void(plan.mass[at] += t);
    plan.push(i, k, t);
  };
  add(plan.row[e], plan.col[f]);
  add(plan.row[f], plan.col[e]);
  plan.mass[e] -= t;
  plan.mass[f] -= t;
}

}  // namespace tfgw

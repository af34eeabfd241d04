#include "perturb.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels.hpp"

namespace tfgw {
namespace {

// Linked nodes, breadth first: a random node, its neighbours in random order, their neighbours, …
std::vector<int> patch(const Graph& graph, const std::vector<int32_t>& places, int index) {
  const size_t size = patch_size(graph.n);
  std::vector<double> turns(graph.n);
  for (int i = 0; i < graph.n; ++i) turns[i] = turn(index, places[i]);
  const auto earlier = [&](int a, int b) { return turns[a] < turns[b]; };
  std::vector<char> taken(graph.n, 0);
  std::vector<int> nodes, fresh;
  for (size_t next = 0; nodes.size() < size;) {
    fresh.clear();
    if (next < nodes.size()) {
      graph.for_each_in_column(nodes[next++], [&](int i, double c) {
        if (c != 0 && !taken[i]) fresh.push_back(i);
      });
      std::sort(fresh.begin(), fresh.end(), earlier);
    } else {  // the first node, and whenever no link leads further
      int first = -1;
      for (int i = 0; i < graph.n; ++i)
        if (!taken[i] && (first < 0 || earlier(i, first))) first = i;
      fresh.push_back(first);
    }
    for (int i : fresh)
      if (!taken[i] && nodes.size() < size) taken[i] = 1, nodes.push_back(i);
  }
  return nodes;
}

}  // namespace

std::vector<int32_t> node_places(const Graph& graph, const Template& tmpl, const Matrix& feature_cost) {
  const int n = graph.n;
  std::vector<double> own(n), key(n), around(n);
  for (int i = 0; i < n; ++i) {
    own[i] = graph.out_mean[i] + graph.in_mean[i];
    for (int k = 0; k < tmpl.m; ++k) own[i] += feature_cost[size_t(i) * tmpl.ld + k] / (k + 1);
  }
  key = own;
  for (int hop = 0; hop < kHops; ++hop) {
    std::fill(around.begin(), around.end(), 0.0);
    graph.for_each_entry([&](int i, int j, double c) { around[i] += c * key[j], around[j] += c * key[i]; });
    double peak = 0;
    for (double v : around) peak = std::max(peak, std::abs(v));
    for (int i = 0; i < n; ++i) key[i] = own[i] + (peak > 0 ? around[i] / peak : 0.0);
  }
  std::vector<int32_t> order(n), places(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key[a] < key[b]; });
  for (int place = 0; place < n; ++place) places[order[place]] = place;
  return places;
}

void add_noise(const std::vector<int32_t>& places, int index, double scale, int m, int ld, Matrix& cost) {
  for (size_t i = 0; i < places.size(); ++i)
    for (int k = 0; k < m; ++k) cost[i * ld + k] += scale * noise(index, places[i], k);
}

void perturbed_cost(const Graph& graph, const Template& tmpl, const LowestMinima& minima,
                    const std::vector<int32_t>& places, int index, Matrix& cost) {
  cost = minima.gradient(near_minimum(minima.count(), index));
  if (is_between_minima(index)) {
    const Matrix& other = minima.gradient(other_minimum(minima.count(), index));
    for (size_t e = 0; e < cost.size(); ++e) cost[e] = 0.5 * (cost[e] + other[e]);
  }
  const double largest = kernels().largest_magnitude(graph.n, tmpl.m, tmpl.ld, cost.data());
  for (int i : patch(graph, places, index))
    for (int k = 0; k < tmpl.m; ++k)
      cost[size_t(i) * tmpl.ld + k] += largest * noise(index, places[i], k);
}

}  // namespace tfgw

#include "perturb.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels.hpp"

namespace tfgw {
namespace {

constexpr size_t kKept = 8;         // number of minima stored
constexpr size_t kLowest = 4;       // a start is near one of this many lowest minima
constexpr int kPatch = 8;           // nodes moved by a start
constexpr int kHops = 4;            // radius of the neighbourhood that determines a node's place in the order
constexpr double kSameValue = 1e-9;

// Random quantities drawn for a start; further draws are for pairs (node, template node).
enum Draw : uint64_t { kMinimum, kOther, kNode };

// A number in [0, 1) that is a function of its arguments (splitmix64).
double draw(uint64_t index, uint64_t what, uint64_t which) {
  uint64_t z = (index + 1) * 0x9E3779B97F4A7C15u + what * 0xD1B54A32D192ED03u + which * 0x8CB92BA72F3D8DD7u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

size_t draw_below(size_t count, uint64_t index, uint64_t what) {
  return std::min(count - 1, size_t(draw(index, what, 0) * double(count)));
}

// Between −1 and 1, for the node at a place and node k of the template.
double noise(int index, int place, int k) { return 2 * draw(index, kNode + 1 + place, k) - 1; }

// Linked nodes, breadth first: a random node, its neighbours in random order, their neighbours, …
std::vector<int> patch(const Graph& graph, const std::vector<int32_t>& places, int index) {
  const size_t size = std::min(graph.n, kPatch);
  std::vector<double> turn(graph.n);
  for (int i = 0; i < graph.n; ++i) turn[i] = draw(index, kNode, places[i]);
  const auto earlier = [&](int a, int b) { return turn[a] < turn[b]; };
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

void LowestMinima::add(double value, const Matrix& gradient) {
  const auto place = std::find_if(found_.begin(), found_.end(), [&](const Minimum& m) {
    return value <= m.value + kSameValue * std::abs(m.value);
  });
  if (place != found_.end() && value >= place->value - kSameValue * std::abs(place->value)) return;
  if (place == found_.end() && found_.size() == kKept) return;
  found_.insert(place, {value, gradient});
  if (found_.size() > kKept) found_.pop_back();
}

std::vector<int32_t> node_places(const Graph& graph, const Template& tmpl, const Matrix& feature_cost) {
  const int n = graph.n;
  std::vector<double> own(n), look(n), around(n);
  for (int i = 0; i < n; ++i) {
    own[i] = graph.out_mean[i] + graph.in_mean[i];
    for (int k = 0; k < tmpl.m; ++k) own[i] += feature_cost[size_t(i) * tmpl.ld + k] / (k + 1);
  }
  look = own;
  for (int hop = 0; hop < kHops; ++hop) {
    std::fill(around.begin(), around.end(), 0.0);
    graph.for_each_entry([&](int i, int j, double c) { around[i] += c * look[j], around[j] += c * look[i]; });
    double peak = 0;
    for (double v : around) peak = std::max(peak, std::abs(v));
    for (int i = 0; i < n; ++i) look[i] = own[i] + (peak > 0 ? around[i] / peak : 0.0);
  }
  std::vector<int32_t> order(n), places(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return look[a] < look[b]; });
  for (int place = 0; place < n; ++place) places[order[place]] = place;
  return places;
}

void add_noise(const std::vector<int32_t>& places, int index, double scale, int m, int ld, Matrix& cost) {
  for (size_t i = 0; i < places.size(); ++i)
    for (int k = 0; k < m; ++k) cost[i * ld + k] += scale * noise(index, places[i], k);
}

void perturbed_cost(const Graph& graph, const Template& tmpl, const LowestMinima& minima,
                    const std::vector<int32_t>& places, int index, Matrix& cost) {
  const auto& found = minima.found();
  cost = found[draw_below(std::min(found.size(), kLowest), index, kMinimum)].gradient;
  if (index % 2) {
    const Matrix& other = found[draw_below(found.size(), index, kOther)].gradient;
    for (size_t e = 0; e < cost.size(); ++e) cost[e] = 0.5 * (cost[e] + other[e]);
  }
  const double largest = kernels().largest_magnitude(graph.n, tmpl.m, tmpl.ld, cost.data());
  for (int i : patch(graph, places, index))
    for (int k = 0; k < tmpl.m; ++k)
      cost[size_t(i) * tmpl.ld + k] += largest * noise(index, places[i], k);
}

}  // namespace tfgw

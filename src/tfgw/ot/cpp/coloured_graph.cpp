#include "coloured_graph.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>
#include <utility>

namespace tfgw {
namespace {

constexpr uint64_t kBackward = 0x5bd1e9955bd1e995ull;
constexpr uint64_t kLoop = 0x27d4eb2f165667c5ull;

// A hash over all ties tells whether each has a counterpart of the same colour in the other direction.
bool is_symmetric(const std::vector<Tie>& ties) {
  uint64_t difference = 0;
  for (const Tie& t : ties) {
    difference += mix(mix(mix(t.colour) + uint64_t(t.from)) + uint64_t(t.to));
    difference -= mix(mix(mix(t.colour) + uint64_t(t.to)) + uint64_t(t.from));
  }
  return difference == 0;
}

bool has_one_colour(const std::vector<Tie>& ties) {
  return std::all_of(ties.begin(), ties.end(), [&](const Tie& t) { return t.colour == ties[0].colour; });
}

uint64_t tie_hash(const ColouredGraph::Neighbour& neighbour) {
  return mix(neighbour.colour + mix(uint64_t(neighbour.node)));
}

}  // namespace

uint64_t colour_of(double value) {
  value += 0.0;
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

std::vector<int32_t> rank_rows(const double* rows, int64_t count, int64_t width) {
  const auto less = [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(rows + a * width, rows + (a + 1) * width, rows + b * width,
                                        rows + (b + 1) * width);
  };
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), less);
  std::vector<int32_t> rank(count, 0);
  for (int64_t r = 1; r < count; ++r) rank[order[r]] = rank[order[r - 1]] + (less(order[r - 1], order[r]) ? 1 : 0);
  return rank;
}

ColouredGraph::ColouredGraph(std::vector<int32_t> colours, std::vector<Tie> ties) : colours_(std::move(colours)) {
  const bool one_way = is_symmetric(ties);  // the ties that leave a node are then also those that enter it
  ptr_.assign(size() + 1, 0);
  for (const Tie& t : ties) ++ptr_[t.from + 1], ptr_[t.to + 1] += !one_way;
  std::partial_sum(ptr_.begin(), ptr_.end(), ptr_.begin());
  neighbours_.resize(ptr_.back());
  std::vector<int64_t> fill(ptr_.begin(), ptr_.end() - 1);
  for (const Tie& t : ties) {
    const uint64_t colour = mix(t.from == t.to ? t.colour ^ kLoop : t.colour);
    neighbours_[fill[t.from]++] = {t.to, colour};
    if (!one_way) neighbours_[fill[t.to]++] = {t.from, colour ^ kBackward};
  }
  find_twins(ties, one_way);
}

// Twins have equal neighbourhoods (compared by hashes) or, if they are tied to each other, equal neighbourhoods once
// each node counts as its own neighbour. The second kind is detected only if all ties have the same colour.
void ColouredGraph::find_twins(const std::vector<Tie>& ties, bool symmetric) {
  std::vector<uint64_t> hash(size(), 0);
  for (int v = 0; v < size(); ++v)
    for (const Neighbour* e = begin(v); e != end(v); ++e) {
      const bool loop = e->node == v;
      hash[v] += loop ? mix(e->colour) : tie_hash(*e);
    }
  std::vector<int32_t> nodes(size());
  std::iota(nodes.begin(), nodes.end(), 0);
  twins_ = nodes;
  join_alike(nodes, hash);
  if (ties.empty() || !symmetric || !has_one_colour(ties)) return;
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), [&](int v) { return twins_[v] != v; }), nodes.end());
  for (int32_t v : nodes) hash[v] += tie_hash({v, mix(ties[0].colour)});
  join_alike(nodes, hash);
}

// Makes nodes of equal colour and hash twins of the first of them.
void ColouredGraph::join_alike(std::vector<int32_t>& nodes, const std::vector<uint64_t>& hash) {
  const auto key = [&](int32_t v) { return std::make_tuple(colours_[v], hash[v]); };
  std::sort(nodes.begin(), nodes.end(), [&](int a, int b) { return std::make_pair(key(a), a) < std::make_pair(key(b), b); });
  for (size_t i = 1; i < nodes.size(); ++i)
    if (key(nodes[i]) == key(nodes[i - 1])) twins_[nodes[i]] = twins_[nodes[i - 1]];
}

}  // namespace tfgw

#include "canonical.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "refinement.hpp"

namespace tfgw {
namespace {

// Nodes known to be images of each other under automorphisms.
class Orbits {
 public:
  explicit Orbits(const ColouredGraph& graph) : parent_(graph.size()) {
    for (int v = 0; v < graph.size(); ++v) parent_[v] = graph.twin_class(v);
  }
  int find(int v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  void join(int a, int b) { parent_[find(a)] = find(b); }

 private:
  std::vector<int32_t> parent_;
};

class Search {
 public:
  Search(const ColouredGraph& graph, int64_t effort, Interrupt& interrupt)
      : graph_(graph), interrupt_(interrupt), refiner_(graph, interrupt), effort_(effort) {}

  CanonicalOrder run() {
    Partition first = refiner_.first_partition();
    if (next_cell(first) < 0) return {first.node, exact_};  // the only leaf
    if (!interrupt_.stopped()) descend(std::move(first), 0);
    return {best_, exact_};
  }

 private:
  // The graph in the order of a leaf: for each position, the targets of its ties and their colours.
  using Image = std::vector<std::pair<int32_t, uint64_t>>;

  // Explores the branches below a partition. Returns the depth at which to continue: this one, or one further up.
  int descend(Partition partition, int depth) {
    const int cell = next_cell(partition);
    if (cell < 0) return leaf(partition, depth);
    const std::vector<int32_t> members(partition.node.begin() + cell,
                                       partition.node.begin() + cell + partition.size[cell]);
    orbits_.emplace_back(graph_);
    work_ += graph_.size();
    std::vector<int32_t> explored;
    int back = depth;
    for (size_t i = 0; i < members.size() && back == depth; ++i) {
      const int v = members[i];
      Orbits& orbits = orbits_[depth];
      if (std::any_of(explored.begin(), explored.end(), [&](int u) { return orbits.find(u) == orbits.find(v); }))
        continue;
      if (has_best_ && refiner_.work() + work_ > effort_) {
        exact_ = false;
        break;
      }
      explored.push_back(v);
      Partition child = partition;
      const uint64_t trace = refiner_.individualise(child, v);
      if (interrupt_.stopped()) return -1;
      if (!follow(trace, depth)) continue;
      path_.resize(depth);
      path_.push_back(v);
      back = descend(std::move(child), depth + 1);
    }
    orbits_.pop_back();
    return back < depth ? back : depth - 1;
  }

  // Whether a branch with this hash can still lead to the best leaf. A hash smaller than the best one discards
  // everything found so far.
  bool follow(uint64_t trace, int depth) {
    if (has_best_) {
      if (depth >= int(best_trace_.size()) || trace > best_trace_[depth]) return false;
      if (trace == best_trace_[depth]) return true;
    }
    has_best_ = false;
    best_trace_.resize(depth);
    best_trace_.push_back(trace);
    return true;
  }

  // The first of the smallest cells with several nodes, or -1. Cells of twins are split on the way.
  int next_cell(Partition& p) const {
    int found = -1;
    const int n = graph_.size();
    for (int cell = 0, size; cell < n; cell += size) {
      size = p.size[cell];
      if (size == 1 || (found >= 0 && size >= p.size[found])) continue;
      const int32_t twin = graph_.twin_class(p.node[cell]);
      const auto first = p.node.begin() + cell;
      if (std::all_of(first, first + size, [&](int v) { return graph_.twin_class(v) == twin; }))
        Refiner::separate(p, cell);
      else
        found = cell;
    }
    return found;
  }

  int leaf(const Partition& p, int depth) {
    Image image = image_of(p);
    if (has_best_ && depth == int(best_trace_.size()) && image == best_image_) return automorphism(p, depth);
    if (!has_best_ || depth < int(best_trace_.size()) || image < best_image_) {
      has_best_ = true;
      best_trace_.resize(depth);
      best_image_ = std::move(image);
      best_ = p.node;
      best_path_ = path_;
    }
    return depth - 1;
  }

  // The map from the best leaf to this one fixes all nodes individualised on both paths, so it is valid at every depth
  // down to where the paths diverge. Below that, the rest of the branch would only repeat known results.
  int automorphism(const Partition& p, int depth) {
    int shared = 0;
    while (shared < depth && path_[shared] == best_path_[shared]) ++shared;
    for (int d = 0; d <= shared && d < int(orbits_.size()); ++d)
      for (int place = 0; place < graph_.size(); ++place)
        if (best_[place] != p.node[place]) orbits_[d].join(best_[place], p.node[place]);
    work_ += int64_t(shared + 1) * graph_.size();
    return shared;
  }

  Image image_of(const Partition& p) {
    Image image;
    image.reserve(graph_.ties() + graph_.size());
    for (int v : p.node) {
      const size_t start = image.size();
      for (auto e = graph_.begin(v); e != graph_.end(v); ++e) image.emplace_back(p.cell[e->node], e->colour);
      std::sort(image.begin() + int64_t(start), image.end());
      image.emplace_back(-1, 0);  // end of the row
    }
    work_ += 4 * graph_.ties();
    return image;
  }

  const ColouredGraph& graph_;
  Interrupt& interrupt_;
  Refiner refiner_;
  const int64_t effort_;
  int64_t work_ = 0;
  bool has_best_ = false, exact_ = true;
  std::vector<uint64_t> best_trace_;
  Image best_image_;
  std::vector<int32_t> best_, path_, best_path_;
  std::vector<Orbits> orbits_;  // of the partition at each depth of the current path
};

}  // namespace

CanonicalOrder canonical_order(const ColouredGraph& graph, int64_t effort, Interrupt& interrupt) {
  return Search(graph, effort, interrupt).run();
}

bool canonical_orders(const OrderInput& in, int64_t effort, Interrupt& interrupt, int64_t* order, int32_t* exact) {
  std::vector<std::vector<Tie>> ties(in.graphs);
  if (in.edges > 0) {
    std::vector<int32_t> graph_of(in.ptr[in.graphs]);
    for (int64_t b = 0; b < in.graphs; ++b)
      std::fill(graph_of.begin() + in.ptr[b], graph_of.begin() + in.ptr[b + 1], int32_t(b));
    for (int64_t e = 0; e < in.edges; ++e) {
      const int64_t from = in.edge_index[e], b = graph_of[from], first = in.ptr[b];
      uint64_t colour = 0;
      for (int64_t c = 0; c < in.edge_width; ++c) colour = mix(colour + colour_of(in.edge_rows[e * in.edge_width + c]));
      ties[b].push_back({int32_t(from - first), int32_t(in.edge_index[in.edges + e] - first), colour});
    }
  }
  const double* dense = in.dense;
  for (int64_t b = 0; b < in.graphs; ++b) {
    const int64_t first = in.ptr[b], n = in.ptr[b + 1] - first;
    for (int64_t i = 0; dense && i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        if (dense[i * n + j] != 0) ties[b].push_back({int32_t(i), int32_t(j), mix(colour_of(dense[i * n + j]))});
    if (dense) dense += n * n;
    const CanonicalOrder found = canonical_order(
        ColouredGraph(rank_rows(in.node_rows + first * in.node_width, n, in.node_width), std::move(ties[b])), effort,
        interrupt);
    if (interrupt.poll()) return false;
    for (int64_t i = 0; i < n; ++i) order[first + i] = first + found.order[i];
    exact[b] = found.exact;
  }
  return true;
}

}  // namespace tfgw

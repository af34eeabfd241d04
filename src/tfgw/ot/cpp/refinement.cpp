#include "refinement.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tfgw {
namespace {

constexpr int64_t kPollEvery = int64_t(1) << 18;  // steps between two polls of the interrupt: a few milliseconds

}  // namespace

Refiner::Refiner(const ColouredGraph& graph, Interrupt& interrupt)
    : graph_(graph), interrupt_(interrupt), key_(graph.size(), 0), queued_(graph.size(), 0) {
  for (std::vector<int32_t>* list : {&touched_, &touched_cells_, &parts_}) list->reserve(graph.size());
}

Partition Refiner::first_partition() {
  const int n = graph_.size();
  Partition p;
  p.node.resize(n);
  std::iota(p.node.begin(), p.node.end(), 0);
  std::stable_sort(p.node.begin(), p.node.end(), [&](int a, int b) { return graph_.colour(a) < graph_.colour(b); });
  p.cell.resize(n);
  p.size.assign(n, 0);
  std::vector<int32_t> queue;
  queue.reserve(2 * size_t(n));
  for (int place = 0; place < n; ++place) {
    if (place == 0 || graph_.colour(p.node[place]) != graph_.colour(p.node[place - 1])) queue.push_back(place);
    p.cell[p.node[place]] = queue.back();
    ++p.size[queue.back()];
  }
  p.cells = int(queue.size());
  refine(p, std::move(queue));
  return p;
}

uint64_t Refiner::individualise(Partition& p, int node) {
  const int cell = p.cell[node];
  const auto first = p.node.begin() + cell;
  std::iter_swap(first, std::find(first, first + p.size[cell], node));
  p.size[cell + 1] = p.size[cell] - 1;
  for (int place = cell + 1; place < cell + p.size[cell]; ++place) p.cell[p.node[place]] = cell + 1;
  p.size[cell] = 1;
  ++p.cells;
  work_ += int64_t(p.node.size());
  return mix(uint64_t(cell)) + refine(p, {cell});
}

void Refiner::separate(Partition& p, int cell) {
  const int size = p.size[cell];
  for (int place = cell; place < cell + size; ++place) {
    p.cell[p.node[place]] = place;
    p.size[place] = 1;
  }
  p.cells += size - 1;
}

bool Refiner::stop_requested() {
  if (work_ < next_poll_) return interrupt_.stopped();
  next_poll_ = work_ + kPollEvery;
  return interrupt_.poll();
}

// Every cell in the queue acts as a splitter: cells whose nodes have different ties to it are split.
uint64_t Refiner::refine(Partition& p, std::vector<int32_t> queue) {
  uint64_t trace = 0;
  for (int32_t cell : queue) queued_[cell] = 1;
  for (size_t next = 0; next < queue.size(); ++next) {
    const int cell = queue[next];
    queued_[cell] = 0;
    if (p.is_discrete() || stop_requested()) continue;
    touched_.clear();
    for (int place = cell; place < cell + p.size[cell]; ++place)
      for (auto e = graph_.begin(p.node[place]); e != graph_.end(p.node[place]); ++e) {
        if (key_[e->node] == 0) touched_.push_back(e->node);
        key_[e->node] += mix(e->colour) | 1;
        ++work_;
      }
    touched_cells_.clear();
    for (int32_t v : touched_) touched_cells_.push_back(p.cell[v]);
    std::sort(touched_cells_.begin(), touched_cells_.end());
    touched_cells_.erase(std::unique(touched_cells_.begin(), touched_cells_.end()), touched_cells_.end());
    for (int32_t other : touched_cells_) trace = mix(trace + split(p, other, queue));
    for (int32_t v : touched_) key_[v] = 0;
  }
  return trace;
}

// Splits a cell by the keys of its nodes, smallest first. The first of the largest parts is not queued unless the cell
// was queued already: its splits follow from those by the whole cell and by the other parts.
uint64_t Refiner::split(Partition& p, int cell, std::vector<int32_t>& queue) {
  const int size = p.size[cell];
  const auto first = p.node.begin() + cell;
  work_ += size;
  uint64_t trace = mix(uint64_t(cell)) + mix(key_[*first] + uint64_t(size));
  if (std::all_of(first, first + size, [&](int v) { return key_[v] == key_[*first]; })) return trace;
  std::sort(first, first + size, [&](int a, int b) { return key_[a] < key_[b]; });
  int largest = cell;
  std::vector<int32_t>& parts = parts_;
  parts.clear();
  trace = mix(uint64_t(cell));
  for (int place = cell; place < cell + size; ++place) {
    const int v = p.node[place];
    if (place == cell || key_[v] != key_[p.node[place - 1]]) {
      parts.push_back(place);
      p.size[place] = 0;
    }
    p.cell[v] = parts.back();
    ++p.size[parts.back()];
  }
  for (int32_t part : parts) {
    trace = mix(trace + mix(key_[p.node[part]]) + uint64_t(p.size[part]));
    if (p.size[part] > p.size[largest]) largest = part;
  }
  p.cells += int(parts.size()) - 1;
  const bool all = queued_[cell];
  for (int32_t part : parts)
    if (!queued_[part] && (all || part != largest)) {
      queued_[part] = 1;
      queue.push_back(part);
    }
  return trace;
}

}  // namespace tfgw

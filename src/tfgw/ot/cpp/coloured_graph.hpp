// A graph with coloured nodes and entries. Isomorphic graphs must agree in all colours.
#pragma once

#include <cstdint>
#include <vector>

#include "rules.cuh"  // mix

namespace tfgw {

// The bits of a number as a colour; −0 counts as 0.
uint64_t colour_of(double value);

// Index of each row (count, width) in the sorted list of distinct rows: equal rows get equal indices.
std::vector<int32_t> rank_rows(const double* rows, int64_t count, int64_t width);

struct Tie {
  int32_t from, to;
  uint64_t colour;
};

class ColouredGraph {
 public:
  struct Neighbour {
    int32_t node;
    uint64_t colour;  // of the tie, its direction included
  };

  // `colours`: nodes of equal colour may be exchanged; nodes are ordered by colour. `ties`: the entries of a matrix,
  // both directions of an undirected edge.
  ColouredGraph(std::vector<int32_t> colours, std::vector<Tie> ties);

  int size() const { return int(colours_.size()); }
  int64_t ties() const { return int64_t(neighbours_.size()); }
  int32_t colour(int v) const { return colours_[v]; }

  // Nodes with equal numbers are twins: exchanging them leaves the graph unchanged.
  int32_t twin_class(int v) const { return twins_[v]; }

  const Neighbour* begin(int v) const { return neighbours_.data() + ptr_[v]; }
  const Neighbour* end(int v) const { return neighbours_.data() + ptr_[v + 1]; }

 private:
  void find_twins(const std::vector<Tie>& ties, bool symmetric);
  void join_alike(std::vector<int32_t>& nodes, const std::vector<uint64_t>& hash);

  std::vector<int32_t> colours_, twins_;
  std::vector<int64_t> ptr_;
  std::vector<Neighbour> neighbours_;
};

}  // namespace tfgw

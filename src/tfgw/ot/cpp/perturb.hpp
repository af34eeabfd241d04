// Starts near local minima found earlier.
//
// A local minimum solves the linear problem whose cost is the gradient there. After a random change of the gradient at
// a few linked nodes, the solution keeps most of the plan but moves these nodes. The mean of the gradients at two
// minima preserves what they have in common.
//
// The random numbers are a function of the start's number and of the nodes' places in an order that, up to ties, does
// not depend on their numbering.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "problem.hpp"
#include "start_rules.cuh"

namespace tfgw {

// The lowest local minima so far, lowest first, each value once, with the gradients of E there: (n, ld).
class LowestMinima {
 public:
  void clear() { values_.count = 0; }
  int count() const { return values_.count; }
  const Matrix& gradient(int place) const { return gradients_[values_.slot[place]]; }
  void add(double value, const Matrix& gradient) {
    if (const int slot = values_.add(value); slot >= 0) gradients_[slot] = gradient;
  }

 private:
  LowestValues values_{};
  std::array<Matrix, kKeptMinima> gradients_;
};

// Place of each node of the graph when nodes are sorted by how they and their neighbourhoods compare to the template.
std::vector<int32_t> node_places(const Graph& graph, const Template& tmpl, const Matrix& feature_cost);

// Adds numbers between −scale and scale, which depend on start number `index`, to a cost (n, ld).
void add_noise(const std::vector<int32_t>& places, int index, double scale, int m, int ld, Matrix& cost);

// Fills `cost` (n, ld) so that its optimal transport plan is start number `index`, near one minimum or between two.
void perturbed_cost(const Graph& graph, const Template& tmpl, const LowestMinima& minima,
                    const std::vector<int32_t>& places, int index, Matrix& cost);

}  // namespace tfgw

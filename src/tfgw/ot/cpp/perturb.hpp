// Starts near local minima found earlier.
//
// A local minimum solves the linear problem whose cost is the gradient there. After a random change of the gradient at
// a few linked nodes, the solution keeps most of the plan but moves these nodes. The mean of the gradients at two
// minima preserves what they have in common.
//
// The random numbers are a function of the start's number and of the nodes' places in an order that, up to ties, does
// not depend on their numbering.
#pragma once

#include <cstdint>
#include <vector>

#include "problem.hpp"

namespace tfgw {

// The lowest local minima so far, lowest first, each value once.
class LowestMinima {
 public:
  struct Minimum {
    double value;
    Matrix gradient;  // of E there: (n, ld)
  };

  void clear() { found_.clear(); }
  bool empty() const { return found_.empty(); }
  void add(double value, const Matrix& gradient);
  const std::vector<Minimum>& found() const { return found_; }

 private:
  std::vector<Minimum> found_;
};

// Place of each node of the graph when nodes are sorted by how they and their neighbourhoods compare to the template.
std::vector<int32_t> node_places(const Graph& graph, const Template& tmpl, const Matrix& feature_cost);

// Adds numbers between −scale and scale, which depend on start number `index`, to a cost (n, ld).
void add_noise(const std::vector<int32_t>& places, int index, double scale, int m, int ld, Matrix& cost);

// Fills `cost` (n, ld) so that its optimal transport plan is start number `index`, near one minimum or between two.
void perturbed_cost(const Graph& graph, const Template& tmpl, const LowestMinima& minima,
                    const std::vector<int32_t>& places, int index, Matrix& cost);

}  // namespace tfgw

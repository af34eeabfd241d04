// Starts near local minima that were found before.
//
// At a local minimum the gradient is a linear cost of which the minimum is a solution. Changed at random for a few nodes
// that are linked, it has a solution that keeps most of the plan and puts these nodes elsewhere. The mean of the gradients
// of two minima keeps what they have in common.
//
// "At random" is a function of a start's number and of the places of nodes in an order that does not depend on how they are
// numbered but for ties.
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

// Place of each node of the graph when nodes are sorted by what they and their surroundings look like from the template.
std::vector<int32_t> node_places(const Graph& graph, const Template& tmpl, const Matrix& feature_cost);

// Adds numbers between −scale and scale to a cost (n, ld), which depend on start number `index`.
void add_noise(const std::vector<int32_t>& places, int index, double scale, int m, int ld, Matrix& cost);

// Fills `cost` (n, ld) such that its optimal transport plan is start number `index`, near one of the minima or between two.
void perturbed_cost(const Graph& graph, const Template& tmpl, const LowestMinima& minima,
                    const std::vector<int32_t>& places, int index, Matrix& cost);

}  // namespace tfgw

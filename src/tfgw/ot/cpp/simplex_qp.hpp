// The corrective step: the weight of each visited vertex in the next iterate.
#pragma once

#include <vector>

namespace tfgw {

// Moves `weights` (on the simplex) downhill to a local minimum of linear·w − 2α wᵀ Q w over the face they span. Q is
// symmetric with stride `stride`; the objective need not be convex. Weights that reach the boundary become exactly 0
// and stay there.
void descend_over_simplex(int count, const double* Q, int stride, const double* linear, double alpha,
                          std::vector<double>& weights);

}  // namespace tfgw

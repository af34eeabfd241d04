// The corrective step: how much of each visited vertex the next iterate holds.
#pragma once

#include <vector>

namespace tfgw {

// Moves `weights` (on the simplex) downhill to a local minimum of  linear·w − 2α wᵀ Q w  over the face that they
// span. Q is symmetric with stride `stride`; the objective need not be convex. Weights that reach the boundary
// become exactly 0 and stay there.
void descend_over_simplex(int count, const double* Q, int stride, const double* linear, double alpha,
                          std::vector<double>& weights);

}  // namespace tfgw

// Exchanges of two entries of a plan: the smallest change that can escape from a point with no descent direction.
//
// Moving mass t from (i, k) and (j, l) to (i, l) and (j, k) changes E by t·slope − 2α·a·b·t², with
// a = C_ii + C_jj − C_ij − C_ji and b likewise in the template. If i and j are linked and so are k and l, the curve is
// concave, and E may be lower at the end of the segment although it rises at first.
#pragma once

#include <vector>

#include "problem.hpp"
#include "transport.hpp"

namespace tfgw {

struct Exchange {
  int first = -1, second = -1;  // entries of the plan
  double change = 0;            // of E

  bool exists() const { return first >= 0; }
};

// The exchange between linked nodes i and j that lowers E the most, if any lowers it by more than `least`. `gradient`
// (n, ld) is the gradient of E at the plan.
Exchange best_exchange(const Graph& graph, const Template& tmpl, double alpha, const Matrix& gradient,
                       const SparsePlan& plan, double least);

void apply(const Exchange& exchange, SparsePlan& plan);

}  // namespace tfgw

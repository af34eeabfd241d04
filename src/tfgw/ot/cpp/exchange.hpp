// Two entries of a plan exchanged: the smallest change that can lead out of a point without a way down.
//
// Taking mass t from (i, k) and (j, l) and giving it to (i, l) and (j, k) changes E by t·slope − 2α·a·b·t², with
// a = C_ii + C_jj − C_ij − C_ji and b likewise in the template. Where i and j are linked and k and l too, the curve bends
// down, and the end of the way may be lower though its beginning rises.
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

// The exchange between linked nodes i and j that lowers E by the most, if one lowers it by more than `least`. `gradient`
// (n, ld) is that of E at the plan.
Exchange best_exchange(const Graph& graph, const Template& tmpl, double alpha, const Matrix& gradient,
                       const SparsePlan& plan, double least);

void apply(const Exchange& exchange, SparsePlan& plan);

}  // namespace tfgw

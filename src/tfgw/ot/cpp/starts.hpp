// Where Frank-Wolfe starts: at hh̄ᵀ, at a coupling given by the caller, at couplings that pin one link of the graph to
// one link of the template, or near earlier minima (perturb.hpp).
//
// On regular graphs hh̄ᵀ is a saddle, and the gradient there is uninformative. Pinning a link (i, i') to a link (k, k')
// breaks the symmetry: every other node is then characterised by the walks that reach it from the two pinned ones.
#pragma once

#include <vector>

#include "problem.hpp"
#include "start_rules.cuh"
#include "transport.hpp"

namespace tfgw {

// A coupling near `start` (row i at start + i * stride, by original template node), whose marginals may be off by
// rounding: rows and columns that are too heavy are scaled down, and the missing mass is spread as a product.
SparsePlan round_to_marginals(const Graph& graph, const Template& tmpl, const double* start, int64_t stride);

// Fills `cost` (n, ld) so that its optimal transport plan is start number `index` (0, 1, …). `feature_cost` is (1−α) M.
// The first four starts pin the best-matching link of the graph to four links of the template's strongest node; then
// other nodes of template and graph are pinned to each other, two links each, in order of rank.
void anchored_cost(const Graph& graph, const Template& tmpl, double alpha, const Matrix& feature_cost,
                   int index, Matrix& cost);

}  // namespace tfgw

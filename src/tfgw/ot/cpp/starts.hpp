// Where Frank-Wolfe starts: at hh̄ᵀ, at a coupling that the caller gives, at couplings that pin one link of the graph to
// one link of the template, or near what it has found already (perturb.hpp).
//
// On regular graphs hh̄ᵀ is a saddle and the gradient there says nothing. Pinning a link (i, i') to a link (k, k')
// breaks the symmetry: every other node is then known by the walks that reach it from the two pinned ones.
#pragma once

#include <vector>

#include "problem.hpp"
#include "transport.hpp"

namespace tfgw {

// Bits, so that a number can be several of them.
enum StartKind : int { kGiven = 0, kUniform = 1, kAnchored = 2, kPerturbed = 4 };

// What start number s = 0, 1, … is, of the kinds that are allowed. Starts come in rounds, in each of which a few fresh ones
// are followed by many near what these have found.
StartKind kind_of_start(int s, int kinds);

// Whether what was found before start number s is to be forgotten.
bool begins_round(int s, int kinds);

// A coupling near `start` (row i at start + i * stride, by original template node), which may miss its marginals by
// rounding: rows and columns that are too heavy shrink, and what is then missing is spread as a product.
SparsePlan round_to_marginals(const Graph& graph, const Template& tmpl, const double* start, int64_t stride);

// Fills `cost` (n, ld) such that its optimal transport plan is start number `index` (0, 1, …). `feature_cost` is
// (1−α) M. The first four starts pin the link of the graph that fits best to four links of the template's strongest
// node; then, two links each, other nodes of template and graph are pinned to each other, those that rank first first.
void anchored_cost(const Graph& graph, const Template& tmpl, double alpha, const Matrix& feature_cost,
                   int index, Matrix& cost);

}  // namespace tfgw

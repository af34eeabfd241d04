// All pairs of a batch of graphs and K templates: the two entry points of the core.
#pragma once

#include "fgw.hpp"
#include "interrupt.hpp"
#include "problem.hpp"

namespace tfgw {

// Outputs of the solve, all preallocated; plan and potentials may be null.
struct SolveOutput {
  double* distance;         // (graphs, templates), like the next five
  double* structure_cost;
  double* feature_cost;
  double* gap;
  int32_t* iterations;
  int32_t* status;
  double* plan;             // (nodes, templates, template nodes)
  double* row_potential;    // (nodes, templates)
  double* col_potential;    // (graphs, templates, template nodes)
  // Diagnostics, all null unless asked for: (graphs, templates)
  double* spread = nullptr;         // between the highest and the lowest value that starts ended with
  double* lower_bound = nullptr;
  int32_t* local_minimum = nullptr;
};

// `start` is null or a coupling per pair in the layout of SolveOutput::plan. False if interrupted.
bool solve_batch(const BatchInput& graphs, const TemplatesInput& templates, const SolveOptions& options,
                 const double* start, int threads, Interrupt& interrupt, const SolveOutput& out);

// What the backward pass reads from the solve.
struct SolvedPairs {
  const double* structure_cost;
  const double* feature_cost;
  const double* plan;
  const double* row_potential;
  const double* col_potential;
};

// Gradients of sum(grad_distance * distance); null pointers are not computed.
struct GradientOutput {
  double* x;                    // (nodes, features)
  double* weights;              // (nodes)
  double* structure;            // (edges), or the dense blocks
  double* template_structure;   // (templates, m, m)
  double* template_x;           // (templates, m, features)
  double* template_weights;     // (templates, m)
  double* alpha;                // (templates)
};

void backward_batch(const BatchInput& graphs, const TemplatesInput& templates, const SolvedPairs& solved,
                    const double* grad_distance, int threads, const GradientOutput& out);

}  // namespace tfgw

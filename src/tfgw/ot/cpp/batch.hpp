// All pairs of a batch of graphs and K templates: the data prepared once, and the two entry points of the core.
#pragma once

#include <vector>

#include "fgw.hpp"
#include "interrupt.hpp"
#include "problem.hpp"

namespace tfgw {

// The graphs and templates of a batch, ready to be solved and differentiated. Points into both inputs.
struct PreparedBatch {
  PreparedBatch(const BatchInput& batch, const TemplatesInput& compared, int threads)
      : graphs_input(batch), templates_input(compared) {
    prepare(graphs_input, templates_input, threads, graphs, templates);
  }

  const BatchInput graphs_input;
  const TemplatesInput templates_input;
  std::vector<Graph> graphs;
  std::vector<Template> templates;
};

// The results of the solve that the backward pass reads.
struct SolvedPairs {
  const double* structure_cost;
  const double* feature_cost;
  const double* row_potential;
  const double* col_potential;
  const SparsePlan* plans;    // (graphs, templates), as written by the solve; or null, and then
  const double* dense_plans;  // (nodes, templates, template nodes)
};

// Outputs of the solve, all preallocated; plans and potentials may be null.
struct SolveOutput {
  double* distance;         // (graphs, templates), like the next five
  double* structure_cost;
  double* feature_cost;
  double* gap;
  int32_t* iterations;
  int32_t* status;
  SparsePlan* plans;        // (graphs, templates): row by row, columns are original template nodes in order
  double* row_potential;    // (nodes, templates)
  double* col_potential;    // (graphs, templates, template nodes)
  // Diagnostics, all null unless requested: (graphs, templates)
  double* spread = nullptr;         // between the highest and the lowest final value of all starts
  double* lower_bound = nullptr;
  int32_t* local_minimum = nullptr;
};

// `start` is null or holds dense couplings, (nodes, templates, template nodes). Returns false if interrupted.
bool solve_batch(const PreparedBatch& batch, const SolveOptions& options, const double* start, int threads,
                 Interrupt& interrupt, const SolveOutput& out);

// What is known of each pair after a solve elsewhere: dense plans, like `start`, distances and status.
struct GivenSolution {
  const double* plans;
  const double* distance;
  const int64_t* status;
};

// The lower bound of each pair, and whether its plan is a local minimum; both arrays have values for empty graphs
// already. Returns false if interrupted.
bool assess_batch(const PreparedBatch& batch, const GivenSolution& given, int threads, Interrupt& interrupt,
                  double* lower_bound, int32_t* local_minimum);

// Gradients of sum(grad_distance * distance); those with null pointers are not computed.
struct GradientOutput {
  double* x;                    // (nodes, features)
  double* weights;              // (nodes)
  double* structure;            // (edges) if edges have weights, or the dense blocks
  double* template_structure;   // (templates, m, m)
  double* template_x;           // (templates, m, features)
  double* template_weights;     // (templates, m)
  double* alpha;                // (templates)
};

void backward_batch(const PreparedBatch& batch, const SolvedPairs& solved, const double* grad_distance, int threads,
                    const GradientOutput& out);

}  // namespace tfgw

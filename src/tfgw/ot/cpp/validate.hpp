// All checks of values. Each throws std::invalid_argument naming the argument and the graph.
#pragma once

#include <cstdint>
#include <vector>

#include "problem.hpp"

namespace tfgw {

// First node of each graph, then the number of nodes. Only graphs after the last node may be empty.
std::vector<int64_t> graph_offsets(const int64_t* batch, int64_t nodes, int64_t graphs);

// `weight_tolerance`: how far the sum of the weights may be from 1.
void validate(const BatchInput& in, double weight_tolerance);
void validate(const TemplatesInput& in, double weight_tolerance);

// Rows of `columns` numbers, one for each node of the batch; null if there are none.
void validate_rows(const char* argument, const double* rows, int64_t columns, const BatchInput& in);

}  // namespace tfgw

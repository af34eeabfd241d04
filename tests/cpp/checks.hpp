// What must hold of every solve, whatever the problem.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "random_problem.hpp"

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                   \
    }                                                                                 \
  } while (false)

namespace tfgw::test {

// Plans are couplings; and, where numbers are of moderate size, the value is equation 1 at the plan and the potentials
// are dual feasible for the gradient there.
void check_solved(const RandomProblem& problem, const Solved& solved);

// Gradients are finite, and the one of α is the difference of the two costs.
void check_gradients(const RandomProblem& problem, const Solved& solved, const Gradients& gradients);

}  // namespace tfgw::test

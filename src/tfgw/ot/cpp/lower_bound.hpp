// A lower bound on FGW that holds for every coupling: Mémoli's third lower bound, with features.
//
//   E(T) = Σ_ik T_ik [(1−α) M_ik + α Σ_jl (C_ij − C̄_kl)² T_jl]
//
// The inner sum is the cost of transporting the values of row i of C to those of row k of C̄ by T. It is at least the
// optimal cost L_ik between these two distributions on a line, which sorting gives. So E(T) ≥ min ⟨(1−α) M + α L, T⟩, a
// linear problem. If structures are not symmetric, the same holds for columns, and L is the mean of both.
#pragma once

#include <vector>

#include "problem.hpp"

namespace tfgw {

// Distributions on a line, each as sorted, distinct values with their masses.
struct Profiles {
  std::vector<int64_t> ptr;
  std::vector<double> value, mass;
};

struct StructureProfiles {
  Profiles rows, columns;  // columns are empty if the structure is symmetric
};

StructureProfiles structure_profiles(const Graph& graph);
StructureProfiles structure_profiles(const Template& tmpl);

// L: (n, ld). Padding is not written.
void add_profile_costs(const StructureProfiles& graph, const StructureProfiles& tmpl, int n, int m, int ld,
                       double scale, Matrix& cost);

// Distributions of each feature over the nodes and, last, of the entries of C over pairs of nodes.
Profiles marginal_profiles(const Graph& graph, int64_t features);

// A cheaper but weaker bound. Any coupling also couples each feature and the entries of C, and |f − f̄|² is a sum over
// features, so E(T) is at least (1−α) times the sum of the optimal costs on a line for each feature, plus α times that
// of the entries (Mémoli's second lower bound). Exact up to rounding for one-hot features.
double marginal_bound(const Profiles& a, const Profiles& b, double alpha);

}  // namespace tfgw

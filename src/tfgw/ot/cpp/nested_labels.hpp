// Optimal transport between graphs with nested labels, in closed form.
//
// Labels are nested if two nodes with the same label in a column also have the same label in every column before it, as
// Weisfeiler–Lehman labels do. The cost between two nodes is the share of the d columns in which they differ. A plan
// leaves at least ½ Σ_k |p_ck − q_ck| of the mass in pairs that differ in column c, where p_ck is the mass of label k in
// column c. Matching equal labels first in the last column, then in the one before it and so on attains all these bounds
// at once, because the labels form a tree. So the optimal value is
//
//   1/d Σ_c ½ Σ_k |p_ck − q_ck|
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "problem.hpp"

namespace tfgw {

class NestedLabels {
 public:
  // Returns nothing if the labels are not nested.
  static std::optional<NestedLabels> of(const std::vector<Graph>& graphs, int64_t columns);

  double distance(int64_t a, int64_t b) const;

 private:
  struct Share {
    int32_t label;
    double mass;
  };

  int64_t columns_ = 0;
  std::vector<int64_t> ptr_;    // (graphs * columns + 1): the shares of each column of each graph
  std::vector<Share> shares_;   // by label
};

}  // namespace tfgw

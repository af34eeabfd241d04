#include "basis.hpp"

namespace tfgw {

std::vector<RootedArc> from_root_down(int rows, int cols, const std::vector<Arc>& arcs) {
  const int nodes = rows + cols;
  std::vector<int32_t> start(nodes + 1, 0), incident(2 * arcs.size());
  for (const Arc& a : arcs) ++start[a.row + 1], ++start[rows + a.col + 1];
  for (int v = 0; v < nodes; ++v) start[v + 1] += start[v];
  std::vector<int32_t> fill(start.begin(), start.end() - 1);
  for (int e = 0; e < int(arcs.size()); ++e) {
    incident[fill[arcs[e].row]++] = e;
    incident[fill[rows + arcs[e].col]++] = e;
  }
  std::vector<RootedArc> out;
  out.reserve(arcs.size());
  std::vector<char> reached(nodes, 0);
  std::vector<int32_t> stack;
  stack.reserve(nodes);
  stack.push_back(nodes - 1);
  reached[nodes - 1] = 1;
  while (!stack.empty()) {
    const int node = stack.back();
    stack.pop_back();
    for (int s = start[node]; s < start[node + 1]; ++s) {
      const Arc& a = arcs[incident[s]];
      const bool child_is_row = node >= rows;
      const int child = child_is_row ? a.row : rows + a.col;
      if (reached[child]) continue;
      reached[child] = 1;
      out.push_back({a, child_is_row});
      stack.push_back(child);
    }
  }
  return out;
}

}  // namespace tfgw

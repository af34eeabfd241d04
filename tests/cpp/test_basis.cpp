// A basis stays a strongly feasible tree with the right marginals and potentials, whatever arcs enter it.
#include "test_basis.hpp"

#include <cmath>
#include <random>
#include <set>
#include <utility>

#include "basis.hpp"
#include "checks.hpp"
#include "kernels.hpp"
#include "linked_tree.hpp"
#include "mask_tree.hpp"
#include "rules.cuh"

namespace tfgw::test {
namespace {

struct Problem {
  int rows, cols;
  std::vector<int64_t> supply, demand;
  std::vector<double> cost;
  int ld() const { return padded(cols); }
};

// Supplies and demands of 1 to 3, so that most pivots meet ties.
Problem random_problem(int rows, int cols, std::mt19937& generator) {
  std::uniform_int_distribution<int> small(1, 3);
  Problem p{rows, cols, std::vector<int64_t>(rows), std::vector<int64_t>(cols), {}};
  int64_t left = 0;
  for (int64_t& s : p.supply) left += s = small(generator);
  for (int64_t& d : p.demand) left -= d = small(generator);
  if (left < 0) p.supply.back() -= left;
  if (left > 0) p.demand.back() += left;
  p.cost.assign(size_t(rows) * p.ld(), 0.0);
  for (double& c : p.cost) c = small(generator);
  return p;
}

// Row after row fills column after column; ties as in the first basis of the solver.
std::vector<Arc> north_west_corner(const Problem& p) {
  std::vector<int64_t> have = p.supply, want = p.demand;
  std::vector<int> extra_have(p.rows, 1), extra_want(p.cols);
  for (int k = 0; k < p.cols; ++k) extra_want[k] = extra_demand(k == p.cols - 1, p.rows, p.cols);
  std::vector<Arc> arcs;
  for (int i = 0, k = 0; i < p.rows;) {
    if (k == p.cols - 1 || !fills_column(want[k], have[i], extra_want[k], extra_have[i])) {
      arcs.push_back({i, k, have[i]});
      want[k] -= have[i], extra_want[k] -= extra_have[i];
      ++i;
    } else {
      arcs.push_back({i, k, want[k]});
      have[i] -= want[k], extra_have[i] -= extra_want[k];
      ++k;
    }
  }
  return arcs;
}

// MaskTree visits split rows as well, as if they had an arc without flow: here every row has supply.
std::vector<Arc> arcs_of(const LinkedTree& tree, int) {
  std::vector<Arc> arcs;
  tree.for_each_arc([&](int row, int col, int64_t flow) { arcs.push_back({row, col, flow}); });
  return arcs;
}

template <int W>
std::vector<Arc> arcs_of(const MaskTree<W>& tree, int rows) {
  std::vector<Arc> arcs;
  int visited = 0;
  tree.for_each_arc([&](int row, int col, int64_t flow) {
    if (visited++ >= rows || flow > 0) arcs.push_back({row, col, flow});
  });
  return arcs;
}

void check_basis(const Problem& p, const std::vector<Arc>& arcs) {
  CHECK(int(arcs.size()) == p.rows + p.cols - 1);
  std::vector<int64_t> sent(p.rows, 0), received(p.cols, 0);
  for (const Arc& a : arcs) {
    CHECK(a.flow >= 0);
    sent[a.row] += a.flow;
    received[a.col] += a.flow;
  }
  CHECK(sent == p.supply && received == p.demand);
  const std::vector<RootedArc> rooted = from_root_down(p.rows, p.cols, arcs);
  CHECK(rooted.size() == arcs.size());  // all nodes are below the root
  for (const RootedArc& a : rooted) CHECK(a.row_is_child || a.arc.flow > 0);
}

template <class Tree>
void check_potentials(const Problem& p, const Tree& tree, const std::vector<Arc>& arcs) {
  for (const Arc& a : arcs) {
    const double c = p.cost[size_t(a.row) * p.ld() + a.col];
    CHECK(std::abs(c - tree.row_potential(a.row) - tree.col_potentials()[a.col]) < 1e-9);
  }
}

template <class Tree>
void test_pivots(int rows, int cols, uint32_t seed) {
  std::mt19937 generator(seed);
  const Problem p = random_problem(rows, cols, generator);
  std::vector<Arc> arcs = north_west_corner(p);
  check_basis(p, arcs);
  Tree tree;
  tree.build(rows, cols, arcs);
  tree.compute_potentials(p.cost.data(), p.ld());
  std::uniform_int_distribution<int> any_row(0, rows - 1), any_col(0, cols - 1);
  for (int pivots = 0; pivots < 100; ++pivots) {
    const int row = any_row(generator), col = any_col(generator);
    std::set<std::pair<int, int>> in_basis;
    for (const Arc& a : arcs) in_basis.emplace(a.row, a.col);
    if (in_basis.count({row, col})) continue;
    const double c = p.cost[size_t(row) * p.ld() + col];
    tree.pivot(row, col, c - tree.row_potential(row) - tree.col_potentials()[col]);
    arcs = arcs_of(tree, rows);
    check_basis(p, arcs);
    check_potentials(p, tree, arcs);
  }
}

// Ties are decided as if every node but the root had a little more supply: here a thousandth.
void test_ties_of_the_first_basis() {
  CHECK(extra_demand(true, 3, 4) == 3 + (4 - 1));  // the root takes what all others have in excess
  CHECK(extra_demand(false, 3, 4) == -1);
  for (int64_t want : {0, 1, 2})
    for (int64_t have : {0, 1, 2})
      for (int extra_want : {-2, -1, 0, 6})
        for (int extra_have : {-1, 0, 1, 5}) {
          const bool expected = 1000 * want + extra_want < 1000 * have + extra_have;
          CHECK(fills_column(want, have, extra_want, extra_have) == expected);
        }
}

}  // namespace

void test_bases() {
  test_ties_of_the_first_basis();
  for (uint32_t seed = 0; seed < 20; ++seed) {
    test_pivots<MaskTree<1>>(7, 5, seed);
    test_pivots<MaskTree<1>>(40, 32, seed);
    test_pivots<MaskTree<2>>(30, 64, seed);
    test_pivots<MaskTree<4>>(50, 70, seed);
    test_pivots<LinkedTree>(7, 5, seed);
    test_pivots<LinkedTree>(60, 45, seed);
  }
}

}  // namespace tfgw::test

#include "transport.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "exact_sum.hpp"
#include "kernels.hpp"

namespace tfgw {
namespace {

constexpr int kPollEvery = 64;  // pricing rounds between two polls of the interrupt
constexpr double kSplitRounding = 1e-10;  // a smaller share of a node's mass is rounding, if rounding can be that large

}  // namespace

void to_fixed_point(const double* weights, int count, int64_t* out) {
  double total = 0;
  for (int i = 0; i < count; ++i) total += weights[i];
  int64_t left = int64_t(1) << kMassBits;
  const double scale = double(left) / total;
  int heaviest = 0;
  for (int i = 0; i < count; ++i) {
    out[i] = std::llround(weights[i] * scale);
    left -= out[i];
    if (out[i] > out[heaviest]) heaviest = i;
  }
  out[heaviest] += left;  // rounding leaves a few units over or under
}

void TransportSimplex::reset(int rows, int cols, int ld, const int64_t* supply, const int64_t* demand) {
  rows_ = rows;
  cols_ = cols;
  ld_ = ld;
  has_basis_ = false;
  supply_.assign(supply, supply + rows);
  demand_.assign(demand, demand + cols);
  u_.resize(rows);
  lowest_.resize(ld);
  lowest_row_.resize(ld);
  candidates_.resize(cols);
}

template <class Use>
auto TransportSimplex::with_tree(Use use) const {
  if (cols_ <= MaskTree<1>::kMaxCols) return use(narrow_);
  if (cols_ <= MaskTree<2>::kMaxCols) return use(medium_);
  if (cols_ <= MaskTree<4>::kMaxCols) return use(wide_);
  return use(widest_);
}

Outcome TransportSimplex::solve(const double* cost, Interrupt& interrupt, int max_sweeps) {
  given_ = cost_ = cost;
  subtracted_.clear();
  return with_tree([&](auto& tree) {
    if (!has_basis_) tree.build(rows_, cols_, greedy_basis());
    has_basis_ = true;
    eps_ = rounding(tree.compute_potentials(cost, ld_));
    return run(tree, interrupt, max_sweeps);
  });
}

// Iterative refinement. Subtracting any potentials from the costs does not change the optimal plans. After subtracting
// those of the basis, its costs are zero up to rounding, so that the new potentials, and with them the tolerance, are
// as small as that. The contribution of the large costs is kept in `subtracted_`.
Outcome TransportSimplex::refine(Interrupt& interrupt) {
  const std::vector<double> u = u_, v = v_;
  const Outcome outcome = with_tree([&](auto& tree) {
    const double left = subtract_potentials(tree);
    tree.compute_potentials(cost_, ld_);
    eps_ = (rows_ + cols_) * left;
    pivoted_ = false;
    return run(tree, interrupt, 0);
  });
  double largest = 0, change = 0;
  const auto complete = [&](std::vector<double>& potentials, const std::vector<double>& before, int first) {
    for (size_t i = 0; i < potentials.size(); ++i) {
      ExactSum total;  // large terms may cancel
      total.add(potentials[i]);
      for (const std::vector<double>& round : subtracted_) total.add(round[first + i]);
      potentials[i] = total.value();
      largest = std::max(largest, std::abs(potentials[i]));
      change = std::max(change, std::abs(potentials[i] - before[i]));
    }
  };
  complete(u_, u, 0);
  complete(v_, v, rows_);
  if (!pivoted_ && change <= rounding(largest)) u_ = u, v_ = v;
  return outcome;
}

// The given costs minus the potentials of all rounds, rounded once: the remainder may be smaller by many digits. If it
// is negative by no more than rounding of the cost, it counts as zero. The potentials are subtracted twice, so that
// their own rounding does not affect that decision. Returns the largest remaining magnitude on the basis.
template <class Tree>
double TransportSimplex::subtract_potentials(Tree& tree) {
  ExactSum sum;
  const auto remainder = [&](int i, int k) {
    sum.clear();
    sum.add(given_[int64_t(i) * ld_ + k]);
    for (const std::vector<double>& round : subtracted_) {
      sum.add(-round[i]);
      sum.add(-round[rows_ + k]);
    }
    return sum.value();
  };
  reduced_.resize(size_t(rows_) * ld_);
  for (int pass = 0; pass < 2; ++pass) {
    tree.compute_potentials(cost_, ld_);
    std::vector<double>& latest = subtracted_.emplace_back(rows_ + cols_);
    for (int i = 0; i < rows_; ++i) latest[i] = tree.row_potential(i);
    std::copy_n(tree.col_potentials(), cols_, &latest[rows_]);
    tree.for_each_arc([&](int row, int col, int64_t) { reduced_[int64_t(row) * ld_ + col] = remainder(row, col); });
    cost_ = reduced_.data();
  }
  const double left = tree.compute_potentials(cost_, ld_);
  std::fill(reduced_.begin(), reduced_.end(), kPadCost);
  for (int i = 0; i < rows_; ++i)
    for (int k = 0; k < cols_; ++k) {
      const double c = remainder(i, k), significant = -rounding(std::abs(given_[int64_t(i) * ld_ + k]));
      reduced_[int64_t(i) * ld_ + k] = c < significant || c > 0 ? c : 0.0;
    }
  return left;
}

// Prices block after block of rows until a whole sweep finds nothing to improve.
template <class Tree>
Outcome TransportSimplex::run(Tree& tree, Interrupt& interrupt, int max_sweeps) {
  const int block = std::min(rows_, priced_rows(ld_));
  const Kernels& fast = kernels();
  int first = 0, clean_rows = 0, rounds = 0, sweeps = 0;
  while (clean_rows < rows_ && (max_sweeps == 0 || sweeps < max_sweeps)) {
    const int last = std::min(rows_, first + block);
    for (int i = first; i < last; ++i) u_[i] = tree.row_potential(i);
    fast.price(first, last, ld_, cost_, u_.data(), tree.col_potentials(), eps_, lowest_.data(), lowest_row_.data());
    clean_rows = pivot_on_candidates(tree) ? 0 : clean_rows + last - first;
    first = last == rows_ ? 0 : last;
    sweeps += first == 0;
    if (++rounds % kPollEvery == 0 && interrupt.poll()) return Outcome::interrupted;
  }
  v_.assign(tree.col_potentials(), tree.col_potentials() + cols_);
  return clean_rows < rows_ ? Outcome::improved : Outcome::optimal;
}

// Pivots on the best cell of each column, most negative first, while they remain improving. Returns false if none was.
template <class Tree>
bool TransportSimplex::pivot_on_candidates(Tree& tree) {
  const double* const v = tree.col_potentials();
  Cell* const cells = candidates_.data();
  int count = 0, chosen = -1;
  double lowest = -eps_;
  const auto consider = [&](int c, double reduced) {
    chosen = reduced < lowest ? c : chosen;
    lowest = std::min(reduced, lowest);
  };
  for (int k = 0; k < cols_; ++k) {  // without branches: which columns have a candidate would be unpredictable
    cells[count] = {int32_t(lowest_row_[k]), k, cost_[lowest_row_[k] * ld_ + k]};
    consider(count, lowest_[k]);
    count += lowest_[k] < 0;
  }
  if (chosen < 0) return false;
  pivoted_ = true;
  do {
    const Cell entering = cells[chosen];
    tree.pivot(entering.row, entering.col, lowest);
    eps_ = std::max(eps_, rounding(std::abs(entering.cost)));
    lowest = -eps_;
    chosen = -1;
    for (int c = 0; c < count; ++c)
      consider(c, cells[c].cost - tree.row_potential(cells[c].row) - v[cells[c].col]);
  } while (chosen >= 0);
  return true;
}

void TransportSimplex::flow(SparsePlan& out) const {
  out.resize(rows_ + cols_ - 1);
  int32_t *const rows = out.row.data(), *const cols = out.col.data();
  double* const mass = out.mass.data();
  int count = 0;
  with_tree([&](const auto& tree) {
    tree.for_each_arc([&](int32_t row, int32_t col, int64_t flow) {
      rows[count] = row;
      cols[count] = col;
      mass[count] = double(flow) * kMassUnit;
      count += flow > 0;
    });
  });
  out.resize(count);
}

bool TransportSimplex::is_rounding(int row, int col, double mass) const {
  const double ends = double(std::min(supply_[row], demand_[col])) * kMassUnit;
  return mass <= kEpsilon * (rows_ + cols_) && mass <= kSplitRounding * ends;
}

// Rows in decreasing order of regret: the gap between their cheapest and second cheapest column.
std::vector<int32_t> TransportSimplex::by_regret(const Matrix& cost) const {
  std::vector<double> regret(rows_);
  for (int i = 0; i < rows_; ++i)
    regret[i] = cols_ > 1 ? kernels().regret(ld_, &cost[int64_t(i) * ld_]) : 0.0;
  std::vector<int32_t> order(rows_);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return regret[a] > regret[b]; });
  return order;
}

// Greedy assignment: each row ships to its cheapest open column, rows with the largest regret first. Ties are decided
// as if every node but the root had a vanishing extra supply (counted by `extra`): a basis that is then feasible is
// strongly feasible. Every demand must be positive.
std::vector<Arc> TransportSimplex::greedy_basis() {
  // A cost that all rows pay does not affect the plan. Costs that overflow for extreme input become kPadCost, because the
  // choice of columns needs comparable values.
  relative_.resize(size_t(rows_) * ld_);
  kernels().centre(rows_, cols_, ld_, cost_, relative_.data());
  std::vector<int64_t> have = supply_, want = demand_;
  std::vector<int32_t> extra_have(rows_, 1), extra_want(cols_);
  for (int k = 0; k < cols_; ++k) extra_want[k] = extra_demand(k == cols_ - 1, rows_, cols_);
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> toll(ld_, infinity);  // added to the cost of a column: infinite once it is full
  std::fill_n(toll.begin(), cols_, 0.0);
  std::vector<Arc> arcs;
  arcs.reserve(rows_ + cols_);
  int open_cols = cols_;
  for (int i : by_regret(relative_)) {
    const double* c = &relative_[int64_t(i) * ld_];
    while (true) {
      const int k = kernels().cheapest(ld_, c, toll.data());
      if (open_cols == 1 || !fills_column(want[k], have[i], extra_want[k], extra_have[i])) {
        arcs.push_back({i, k, have[i]});
        want[k] -= have[i];
        extra_want[k] -= extra_have[i];
        break;
      }
      arcs.push_back({i, k, want[k]});
      have[i] -= want[k];
      extra_have[i] -= extra_want[k];
      toll[k] = infinity;
      --open_cols;
    }
  }
  return arcs;
}

}  // namespace tfgw

#include "fgw.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels.hpp"
#include "simplex_qp.hpp"

namespace tfgw {
namespace {

constexpr int kNoTies = -1;          // the start is not hh̄ᵀ
constexpr double kBoundRounding = 1e-12;  // safety margin of a lower bound, relative to the terms of its sum

// Whether to discard all minima found before start number s.
bool begins_round(int s, int kinds) {
  return s == 0 || (s % kStartsPerRound == 0 && kind_of_start(s, kinds) != kPerturbed);
}

// The sum of mass[e] * value(e) over e < count. Four partial sums, so that an addition does not wait for the previous one.
template <class Value>
double weighted_sum(int count, const double* mass, Value value) {
  typedef double Pair __attribute__((vector_size(2 * sizeof(double))));
  Pair first = {}, second = {};
  int e = 0;
  for (; e + 4 <= count; e += 4) {
    first += Pair{mass[e], mass[e + 1]} * Pair{value(e), value(e + 1)};
    second += Pair{mass[e + 2], mass[e + 3]} * Pair{value(e + 2), value(e + 3)};
  }
  for (; e < count; ++e) first[0] += mass[e] * value(e);
  return (first[0] + first[1]) + (second[0] + second[1]);
}

// ⟨plan, matrix⟩
double dot(const SparsePlan& plan, const Matrix& matrix, int ld) {
  const int32_t *row = plan.row.data(), *col = plan.col.data();
  return weighted_sum(plan.count(), plan.mass.data(), [&](int e) { return matrix[int64_t(row[e]) * ld + col[e]]; });
}

// The places of a plan's entries in a matrix. Unsigned, because few processors multiply signed integers in vectors.
void locate(const SparsePlan& plan, uint32_t ld, std::vector<int64_t>& places) {
  places.resize(plan.count());
  for (int e = 0; e < plan.count(); ++e) places[e] = uint64_t(uint32_t(plan.row[e])) * ld + uint32_t(plan.col[e]);
}

// ⟨plan, matrix⟩ from the places of the plan's entries
double dot(const SparsePlan& plan, const Matrix& matrix, const std::vector<int64_t>& places) {
  return weighted_sum(plan.count(), plan.mass.data(), [&](int e) { return matrix[places[e]]; });
}

int64_t bits_of(double value) {
  int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

void FgwSolver::bind(const Graph& graph, const Template& tmpl, const LinearCost& linear) {
  graph_ = &graph;
  tmpl_ = &tmpl;
  linear_source_ = linear;
  n_ = graph.n;
  m_ = tmpl.m;
  ld_ = tmpl.ld;
  alpha_ = graph.kind == StructureKind::none ? 0.0 : tmpl.alpha;
  atoms_.resize(kMaxAtoms + 1);
  Q_.resize(size_t(kMaxAtoms + 1) * (kMaxAtoms + 1));
  linear_.resize(kMaxAtoms + 1);
  transport_.reset(n_, m_, ld_, graph.supply.data(), tmpl.demand.data());
  cross_.bind(graph, tmpl);
  build_linear_cost();
}

bool FgwSolver::solve(const Graph& graph, const Template& tmpl, const LinearCost& linear,
                      const SolveOptions& options, const double* start, int64_t start_stride, Interrupt& interrupt,
                      PairResult& result) {
  bind(graph, tmpl, linear);
  if (alpha_ <= 0) return solve_linear(interrupt, result);
  places_.clear();
  anchored_ = 0;
  int kinds = options.kinds;
  if (may_skip_product(options.starts, kinds) && product_says_nothing()) kinds -= kUniform;
  double highest = -std::numeric_limits<double>::infinity();
  StartEnd best{};
  for (int s = 0; s < options.starts; ++s) {
    // A start must not depend on the last basis of the one before, because the kernels run them at the same time.
    transport_.reset(n_, m_, ld_, graph.supply.data(), tmpl.demand.data());
    count_ = 0;
    weights_.clear();
    if (begins_round(s, kinds)) minima_.clear();
    const StartKind kind = s == 0 && start ? kGiven : kind_of_start(s, kinds);
    if (kind == kGiven) {
      atoms_[0].plan = round_to_marginals(graph, tmpl, start, start_stride);
      add_atom();
    } else if (kind == kUniform) {
      product_start();
    } else if (!start_from_cost(kind, s, interrupt)) {
      return false;
    }
    weights_[0] = 1.0;
    PairResult found;
    if (!descend(kind == kUniform ? s : kNoTies, options, interrupt, found)) return false;
    if (options.starts > 1 && !improve(options, interrupt, found)) return false;
    if ((kinds & kPerturbed) && options.starts > 1) minima_.add(found.distance, gradient_);
    highest = std::max(highest, found.distance);
    const StartEnd end{found.distance <= value_floor(structure_scale()), value_key(bits_of(found.distance)), s};
    if (s == 0 || is_kept(end, best)) {
      result = found;
      best = end;
      keep();
    }
    if (end.at_floor) break;
  }
  result.spread = highest - result.distance;
  split_costs(result);
  return true;
}

// α = 0: one linear problem.
bool FgwSolver::solve_linear(Interrupt& interrupt, PairResult& result) {
  result = {};
  result.iterations = 1;
  if (transport_.solve(linear_cost_.data(), interrupt) == Outcome::interrupted) return false;
  count_ = 1;
  SparsePlan& plan = atoms_[0].plan;
  const auto negligible = [&] {
    transport_.flow(plan);
    return negligible_cost(plan);
  };
  if (!refine(negligible, interrupt)) return false;
  if (transport_.is_refined()) drop_rounding(plan);
  keep();
  split_costs(result);
  return true;
}

// Refines the linear problem just solved until its tolerance is at most `negligible()`.
template <class Negligible>
bool FgwSolver::refine(Negligible negligible, Interrupt& interrupt) {
  double before = std::numeric_limits<double>::infinity();
  while (transport_.tolerance() > negligible() && transport_.tolerance() < before) {
    before = transport_.tolerance();
    if (transport_.refine(interrupt) == Outcome::interrupted) return false;
  }
  return true;
}

// The costs of a linear problem are exact up to their last digits, so each counts, whatever the size of the others.
double FgwSolver::negligible_cost(const SparsePlan& plan) const {
  double smallest = std::numeric_limits<double>::infinity();
  for (int e = 0; e < plan.count(); ++e) {
    const double c = std::abs(linear_cost_[int64_t(plan.row[e]) * ld_ + plan.col[e]]);
    smallest = c > 0 ? std::min(smallest, c) : smallest;
  }
  return kCostShare * smallest;
}

// Drops entries that are rounding errors of the weights, if their costs are so large that they would matter.
void FgwSolver::drop_rounding(SparsePlan& plan) const {
  SparsePlan kept;
  for (int e = 0; e < plan.count(); ++e)
    if (!transport_.is_rounding(plan.row[e], plan.col[e], plan.mass[e])) kept.push(plan.row[e], plan.col[e], plan.mass[e]);
  const double value = dot(kept, linear_cost_, ld_), dropped = dot(plan, linear_cost_, ld_) - value;
  if (std::abs(dropped) > kBoundRounding * std::abs(value)) plan = std::move(kept);
}

// Frank-Wolfe from the current atoms. If they are hh̄ᵀ, `ties` is the number of the start, else kNoTies. Fills in
// `result`, except for the two separate costs.
bool FgwSolver::descend(int ties, const SolveOptions& options, Interrupt& interrupt, PairResult& result) {
  result = {};
  bool lazy = false;
  while (true) {
    rebuild_gradient();
    const bool tie_break = result.iterations == 0 && ties != kNoTies;
    const double* cost = tie_break ? tie_broken_gradient(ties, interrupt) : gradient_.data();
    if (interrupt.poll()) return false;
    const bool last = result.iterations + 1 >= options.max_iter;
    const Outcome outcome = transport_.solve(cost, interrupt, sweep_limit(lazy, last));
    if (outcome == Outcome::interrupted) return false;
    ++result.iterations;

    double linear = 0, squared = 0;  // (1−α)⟨M, T⟩ and ⟨T, X(T)⟩
    for (int s = 0; s < count_; ++s) {
      linear += weights_[s] * linear_[s];
      squared += weights_[s] * quadratic(s);
    }
    const double value = objective(structure_scale(), linear, alpha_, squared);
    const double scale = objective_scale(structure_scale(), linear);
    SparsePlan& vertex = atoms_[count_].plan;
    const auto gap_to_vertex = [&] {
      transport_.flow(vertex);
      locate(vertex, ld_, entries_);
      return frank_wolfe_gap(linear, alpha_, squared, dot(vertex, gradient_, entries_));
    };
    result.distance = value;
    result.gap = gap_to_vertex();

    const double tolerance = gap_tolerance(options.tol, value, scale);
    // If the oracle ignores more than rounding of the objective, the true gap may exceed the computed one.
    if (result.gap <= tolerance && outcome == Outcome::optimal && !tie_break &&
        transport_.tolerance() > kOracleShare * scale) {
      if (!refine([&] { return kOracleShare * scale; }, interrupt)) return false;
      result.gap = gap_to_vertex();
    }
    const bool flat = result.gap <= tolerance;
    lazy = !flat;
    if (flat && outcome == Outcome::improved) continue;
    const bool stationary = flat && !tie_break;
    if (last) {
      result.status = stationary ? Status::converged : Status::max_iter;
      return true;
    }
    if (stationary && count_ == 1 && vertex.same_as(atoms_[0].plan)) return true;
    add_located_atom();
    const int fresh = count_ - 1;
    const double own = Q_[fresh * (kMaxAtoms + 1) + fresh];
    const double curvature = segment_curvature(alpha_, own, quadratic(fresh), squared);
    const bool saddle = is_saddle(curvature, result.gap, tolerance);
    if (flat && !saddle) {
      --count_;
      weights_.pop_back();
      if (stationary) return true;
      continue;
    }
    line_search(result.gap, curvature);
  }
}

// Exchanges entries of the plan while that lowers E, and descends again after each exchange.
bool FgwSolver::improve(const SolveOptions& options, Interrupt& interrupt, PairResult& result) {
  for (int round = 0; round < kMaxExchanges && result.status == Status::converged; ++round) {
    SparsePlan plan;
    merge(plan);
    const Exchange found = find_exchange(plan, result.distance);
    const int before = result.iterations;
    SolveOptions rest = options;
    rest.max_iter -= before;
    if (!found.exists() || rest.max_iter < 1) return true;
    apply(found, plan);
    restart_from(std::move(plan));
    if (!descend(kNoTies, rest, interrupt, result)) return false;
    result.iterations += before;
  }
  return true;
}

Exchange FgwSolver::find_exchange(const SparsePlan& plan, double value) const {
  return best_exchange(*graph_, *tmpl_, alpha_, gradient_, plan, least_gain(value, structure_scale()));
}

void FgwSolver::keep_given(const double* plan, int64_t stride) {
  best_plan_.clear();
  for (int i = 0; i < n_; ++i)
    for (int k = 0; k < m_; ++k)
      if (const double mass = plan[i * stride + tmpl_->live[k]]; mass > 0) best_plan_.push(i, k, mass);
}

bool FgwSolver::is_local_minimum(const PairResult& result) {
  if (result.status != Status::converged) return false;
  if (alpha_ <= 0) return true;
  restart_from(best_plan_);
  rebuild_gradient();
  return !find_exchange(best_plan_, result.distance).exists();
}

bool FgwSolver::lower_bound(const StructureProfiles& graph, const StructureProfiles& tmpl, Interrupt& interrupt,
                            double& bound) {
  Matrix& cost = tie_broken_;
  cost = linear_cost_;
  if (alpha_ > 0) add_profile_costs(graph, tmpl, n_, m_, ld_, alpha_, cost);
  if (transport_.solve(cost.data(), interrupt) == Outcome::interrupted) return false;
  SparsePlan plan;
  double value;
  const auto negligible = [&] {
    transport_.flow(plan);
    value = dot(plan, cost, ld_);
    return kOracleShare * (structure_scale() + value);
  };
  if (!refine(negligible, interrupt)) return false;
  bound = std::max(0.0, value - kBoundRounding * (structure_scale() + value));
  return true;
}

// Whether the gradient at hh̄ᵀ is the same for all couplings, that is, a row term plus a column term. This is the case
// for regular graphs without features.
bool FgwSolver::product_says_nothing() {
  count_ = 0;
  weights_.clear();
  product_start();
  weights_[0] = 1.0;
  rebuild_gradient();
  const double largest = kernels().largest_magnitude(n_, m_, ld_, gradient_.data());
  const auto G = [&](int i, int k) { return gradient_[size_t(i) * ld_ + k]; };
  for (int i = 1; i < n_; ++i)
    for (int k = 1; k < m_; ++k)
      if (std::abs(G(i, k) - G(i, 0) - G(0, k) + G(0, 0)) > kFlatGradient * largest) return false;
  return true;
}

// Start number s from the solution of a linear problem.
bool FgwSolver::start_from_cost(StartKind kind, int s, Interrupt& interrupt) {
  if (kind == kAnchored)
    anchored_cost(*graph_, *tmpl_, alpha_, linear_cost_, anchored_++, tie_broken_);
  else
    perturbed_cost(*graph_, *tmpl_, minima_, places(), s, tie_broken_);
  if (transport_.solve(tie_broken_.data(), interrupt) == Outcome::interrupted) return false;
  transport_.flow(atoms_[0].plan);
  add_atom();
  return true;
}

const std::vector<int32_t>& FgwSolver::places() {
  if (places_.empty()) places_ = node_places(*graph_, *tmpl_, linear_cost_);
  return places_;
}

// Stores the plan and the potentials of the start that has just ended.
void FgwSolver::keep() {
  merge(best_plan_);
  best_u_.assign(transport_.row_potentials(), transport_.row_potentials() + n_);
  best_v_.assign(transport_.col_potentials(), transport_.col_potentials() + m_);
}

// (1−α) M. At α = 1 features are irrelevant and may have any finite value.
void FgwSolver::build_linear_cost() {
  linear_cost_.resize(size_t(n_) * ld_);
  if (linear_source_.given) {
    for (int i = 0; i < n_; ++i)
      for (int k = 0; k < m_; ++k) linear_cost_[size_t(i) * ld_ + k] = given_cost(i, tmpl_->live[k]);
  } else if (alpha_ < 1) {
    kernels().squared_distances(n_, ld_, int(linear_source_.features), 1 - alpha_, graph_->x, tmpl_->ft.data(),
                                linear_cost_.data());
  } else {
    std::fill(linear_cost_.begin(), linear_cost_.end(), 0.0);
  }
  for (int i = 0; i < n_; ++i) std::fill_n(&linear_cost_[size_t(i) * ld_ + m_], ld_ - m_, kPadCost);
}

void FgwSolver::add_atom() {
  locate(atoms_[count_].plan, ld_, entries_);
  add_located_atom();
}

void FgwSolver::add_located_atom() {
  Atom& atom = atoms_[count_];
  cross_.apply(atom.plan, atom.cross);
  const int stride = kMaxAtoms + 1;
  linear_[count_] = dot(atom.plan, linear_cost_, entries_);
  for (int s = 0; s <= count_; ++s)
    Q_[s * stride + count_] = Q_[count_ * stride + s] = dot(atom.plan, atoms_[s].cross, entries_);
  weights_.push_back(0.0);
  ++count_;
}

// hh̄ᵀ as the first atom. Its entries are listed only where they are needed (product_plan); all other quantities have a
// closed form: X(hh̄ᵀ) = ½ (Ch (C̄h̄)ᵀ + Cᵀh (C̄ᵀh̄)ᵀ).
void FgwSolver::product_start() {
  Atom& atom = atoms_[0];
  atom.plan.clear();
  atom.cross.resize(size_t(n_) * ld_);
  std::vector<double> column(m_, 0.0);
  double graph_mean = 0, template_mean = 0;
  const double *out_mean = tmpl_->out_mean.data(), *in_mean = tmpl_->in_mean.data();
  for (int i = 0; i < n_; ++i) {
    const double h = graph_->h[i], out = graph_->out_mean[i], in = graph_->in_mean[i];
    const double* cost = &linear_cost_[size_t(i) * ld_];
    double* cross = &atom.cross[size_t(i) * ld_];
    graph_mean += h * out;
    for (int k = 0; k < m_; ++k) cross[k] = 0.5 * (out * out_mean[k] + in * in_mean[k]);
    std::fill(cross + m_, cross + ld_, 0.0);
    for (int k = 0; k < m_; ++k) column[k] += h * cost[k];
  }
  linear_[0] = 0;
  for (int k = 0; k < m_; ++k) {
    template_mean += tmpl_->h[k] * tmpl_->out_mean[k];
    linear_[0] += tmpl_->h[k] * column[k];
  }
  Q_[0] = graph_mean * template_mean;
  weights_.push_back(0.0);
  ++count_;
}

SparsePlan FgwSolver::product_plan() const {
  SparsePlan plan;
  for (int i = 0; i < n_; ++i)
    for (int k = 0; k < m_; ++k) plan.push(i, k, graph_->h[i] * tmpl_->h[k]);
  return plan;
}

// Exact minimum on the segment from T to the newest vertex, then over the hull of all vertices in use.
void FgwSolver::line_search(double gap, double curvature) {
  const int fresh = count_ - 1;
  const double step = line_search_step(gap, curvature);
  if (step >= 1.0) {
    std::fill(weights_.begin(), weights_.end(), 0.0);
    weights_[fresh] = 1.0;
  } else {
    for (double& w : weights_) w *= 1 - step;
    weights_[fresh] = step;
    correct();
  }
  drop_unused_atoms();
  if (count_ == kMaxAtoms) collapse();
}

void FgwSolver::correct() {
  descend_over_simplex(count_, Q_.data(), kMaxAtoms + 1, linear_.data(), alpha_, weights_);
  double total = 0;
  for (double w : weights_) total += w;
  for (double& w : weights_) w /= total;
}

void FgwSolver::drop_unused_atoms() {
  const int stride = kMaxAtoms + 1;
  int kept = 0;
  for (int s = 0; s < count_; ++s) {
    if (weights_[s] <= 0) continue;
    if (s != kept) {
      std::swap(atoms_[kept], atoms_[s]);
      weights_[kept] = weights_[s];
      linear_[kept] = linear_[s];
      for (int t = 0; t < count_; ++t) Q_[kept * stride + t] = Q_[s * stride + t];
      for (int t = 0; t < count_; ++t) Q_[t * stride + kept] = Q_[t * stride + s];
    }
    ++kept;
  }
  count_ = kept;
  weights_.resize(kept);
}

// The iterate T as one list of entries.
void FgwSolver::merge(SparsePlan& out) {
  for (int s = 0; s < count_; ++s)
    if (atoms_[s].plan.count() == 0) atoms_[s].plan = product_plan();
  if (count_ == 1) {
    out = atoms_[0].plan;
    return;
  }
  scratch_.assign(size_t(n_) * m_, 0.0);
  for (int s = 0; s < count_; ++s) {
    const SparsePlan& plan = atoms_[s].plan;
    for (int e = 0; e < plan.count(); ++e)
      scratch_[size_t(plan.row[e]) * m_ + plan.col[e]] += weights_[s] * plan.mass[e];
  }
  out.clear();
  for (int i = 0; i < n_; ++i)
    for (int k = 0; k < m_; ++k)
      if (scratch_[size_t(i) * m_ + k] > 0) out.push(i, k, scratch_[size_t(i) * m_ + k]);
}

// All slots are in use: the iterate itself becomes the only atom.
void FgwSolver::collapse() {
  SparsePlan merged;
  merge(merged);
  restart_from(std::move(merged));
}

void FgwSolver::restart_from(SparsePlan plan) {
  atoms_[0].plan = std::move(plan);
  count_ = 0;
  weights_.clear();
  add_atom();
  weights_[0] = 1.0;
}

void FgwSolver::rebuild_gradient() {
  gradient_.resize(linear_cost_.size());
  double scales[kMaxAtoms];
  const double* crosses[kMaxAtoms];
  for (int s = 0; s < count_; ++s) {
    scales[s] = -4 * alpha_ * weights_[s];
    crosses[s] = atoms_[s].cross.data();
  }
  kernels().combine(int64_t(n_) * ld_, count_, scales, crosses, linear_cost_.data(), gradient_.data());
}

// Both terms at the plan that was kept, whatever α: α may be learned, and its gradient is their difference.
void FgwSolver::split_costs(PairResult& result) {
  const SparsePlan& plan = best_plan_;
  if (alpha_ < 1) {
    result.feature_cost = dot(plan, linear_cost_, ld_) / (1 - alpha_);
  } else {
    for (int e = 0; e < plan.count(); ++e)
      result.feature_cost += plan.mass[e] * squared_distance(plan.row[e], tmpl_->ft.data() + plan.col[e], ld_);
  }
  if (graph_->kind != StructureKind::none) {
    cross_.apply(plan, similarity_);
    result.structure_cost = structure_term(graph_->constant + tmpl_->constant, dot(plan, similarity_, ld_));
  }
  result.distance = alpha_ * result.structure_cost + (1 - alpha_) * result.feature_cost;
}

// |f_i − f|², with the entries of f `step` apart.
double FgwSolver::squared_distance(int i, const double* f, int64_t step) const {
  const int64_t d = linear_source_.features;
  double s = 0;
  for (int64_t c = 0; c < d; ++c) {
    const double diff = graph_->x[i * d + c] - f[c * step];
    s += diff * diff;
  }
  return s;
}

// The first gradient, at hh̄ᵀ, depends on a node only through its features and its degree, so the first linear problem
// is full of ties, and the vertex that breaks them decides which local minimum is reached. Ties are broken by the
// similarity of the two nodes' neighbourhoods: S₀ = (1−α) F F̄ᵀ + α, Sₜ₊₁ ∝ X(Sₜ). This does not depend on node order.
// After the first start, random numbers are added.
const double* FgwSolver::tie_broken_gradient(int start, Interrupt& interrupt) {
  const double largest = kernels().largest_magnitude(n_, m_, ld_, gradient_.data());
  similarity_.resize(size_t(n_) * ld_);
  const double* f_norm = tmpl_->f_norm.data();
  for (int i = 0; i < n_; ++i) {
    const double x_norm = graph_->x_norm[i];
    const double* cost = &linear_cost_[size_t(i) * ld_];
    double* similarity = &similarity_[size_t(i) * ld_];
    for (int k = 0; k < m_; ++k) similarity[k] = tie_similarity(alpha_, x_norm + f_norm[k], cost[k]);
  }
  tie_broken_ = gradient_;
  Matrix& next = atoms_[count_].cross;  // free until the vertex is known
  for (int hop = 0; hop < kTieHops && !interrupt.poll(); ++hop) {
    cross_.apply(similarity_, next);
    const double peak = kernels().largest_magnitude(n_, ld_, ld_, next.data());
    if (peak == 0) break;
    kernels().divide_and_add(int64_t(n_) * ld_, peak, -kTieShare * largest, next.data(), tie_broken_.data());
    similarity_.swap(next);
  }
  if (start > 0) add_noise(places(), start, kTieShare * largest, m_, ld_, tie_broken_);
  return tie_broken_.data();
}

double FgwSolver::quadratic(int s) const {
  double q = 0;
  for (int t = 0; t < count_; ++t) q += Q_[s * (kMaxAtoms + 1) + t] * weights_[t];
  return q;
}

void FgwSolver::write(const TemplatesInput& templates, int64_t k, const PairOutput& out) {
  if (out.plan) sorted_plan(*out.plan);
  if (!out.row_potential) return;
  // The solver omitted the terms α Σ_j (C_ij² + C_ji²) h_j and their counterpart; the potentials include them.
  double mean = 0;
  for (int l = 0; l < m_; ++l) mean += (best_v_[l] + alpha_ * tmpl_->square[tmpl_->live[l]]) / m_;
  for (int i = 0; i < n_; ++i)
    out.row_potential[i * out.row_stride] = best_u_[i] + alpha_ * graph_->square[i] + mean;
  std::vector<int> live_index(templates.nodes, -1);
  for (int l = 0; l < m_; ++l) live_index[tmpl_->live[l]] = l;
  for (int64_t node = 0; node < templates.nodes; ++node) {
    const double reduced = live_index[node] >= 0 ? best_v_[live_index[node]] : dead_potential(templates, k, node);
    out.col_potential[node] = reduced + alpha_ * tmpl_->square[node] - mean;
  }
}

// The kept plan by original template node, with sorted entries.
void FgwSolver::sorted_plan(SparsePlan& out) {
  sort_by_row(best_plan_, n_, rows_);
  out.clear();
  out.reserve(best_plan_.count());
  for (int i = 0; i < n_; ++i) {
    const int first = out.count();
    for (int64_t e = rows_.ptr[i]; e < rows_.ptr[i + 1]; ++e) {
      if (rows_.value[e] == 0) continue;
      out.push(i, tmpl_->live[rows_.col[e]], rows_.value[e]);
      for (int at = out.count() - 1; at > first && out.col[at - 1] > out.col[at]; --at) {
        std::swap(out.col[at - 1], out.col[at]);
        std::swap(out.mass[at - 1], out.mass[at]);
      }
    }
  }
}

// The potential of a weightless template node: the cheapest way to give it its first mass, min_i (G_ik − u_i).
double FgwSolver::dead_potential(const TemplatesInput& templates, int64_t k, int64_t node) {
  const int64_t m = templates.nodes;
  std::vector<double> cross(n_, 0.0);
  if (alpha_ > 0) {
    const double* C = templates.structure + k * m * m;
    std::vector<double> forth(n_, 0.0), back(n_, 0.0);  // T C̄[node, :]ᵀ and T C̄[:, node]
    for (int e = 0; e < best_plan_.count(); ++e) {
      const int64_t l = tmpl_->live[best_plan_.col[e]];
      forth[best_plan_.row[e]] += best_plan_.mass[e] * C[node * m + l];
      back[best_plan_.row[e]] += best_plan_.mass[e] * C[l * m + node];
    }
    graph_->for_each_entry([&](int i, int j, double c) {
      cross[i] += 0.5 * c * forth[j];
      cross[j] += 0.5 * c * back[i];
    });
  }
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < n_; ++i) {
    const double linear = linear_source_.given
                              ? given_cost(i, node)
                              : (1 - alpha_) * squared_distance(i, templates.x + (k * m + node) * templates.features, 1);
    best = std::min(best, linear - 4 * alpha_ * cross[i] - best_u_[i]);
  }
  return best;
}

}  // namespace tfgw

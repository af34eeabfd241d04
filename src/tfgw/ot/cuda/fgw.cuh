// Kernel `solve`: Fused Gromov-Wasserstein of one pair, the counterpart of cpp/fgw.cpp, which explains it. The leading warp
// runs the algorithm; what goes over whole matrices is a `Task` for all warps of the team (pair.cuh).
// Vertices ("atoms") sit in 32 places; the leader's lane s holds the weight and the linear cost of the atom in place s.
#pragma once

#include "pair.cuh"
#include "transport.cuh"

namespace tfgw {

constexpr int kLazySweeps = 2;
constexpr double kRounding = 1e-14;

template <class Kind>
class FgwSolver {
  using Tree = typename Kind::Tree;
  using Team = typename Kind::Team;
  using This = Pair<Kind>;
  static constexpr int P = Tree::kColumns;

 public:
  TFGW_DEVICE FgwSolver()
      : p_(block_memory<P>().problem), b_(pair_.b), k_(pair_.k), n_(pair_.n), m_(pair_.m), alpha_(pair_.alpha),
        transport_(pair_.tree_memory, n_, m_, pair_.rows_at_once, pair_.w.gradient, p_.supply + pair_.graph.first,
                   pair_.w.row_arrays) {}

  TFGW_DEVICE void lead() {
    PairResult result;
    together(Task::load);
    begin();
    descend(result);
    merge();
    split_costs(result);
    keep_potentials();
    if (p_.plan) together(Task::write);
    PairWriter<P, Team> writer(p_, pair_.graph, b_, k_, alpha_, pair_.potentials());
    writer.write(result, pair_.w.gradient, pair_.w.given);
    if constexpr (!Team::kAlone) call(Task::done, 0, 0);
  }

 private:
  // Everyone does its share of a task, between two meetings.
  TFGW_DEVICE void together(Task task, int which = 0, double number = 0) {
    call(task, which, number);
    if constexpr (Team::kAlone) pair_.carry_out(task, which, number);  // the only place: no function
    else perform<Kind>(task, which, number);
    Team::meet();
  }
  TFGW_DEVICE void call(Task task, int which, double number) {
    BlockMemory<P>& memory = pair_.memory;
    if (!Team::kAlone && lane() == 0) memory.task = int(task), memory.which = which, memory.number = number;
    Team::meet();
  }

  // Of the rows from `first` on, for each column what the simplex should look at.
  TFGW_DEVICE typename Transport<Tree>::Found price(int first, double eps) {
    BlockMemory<P>& memory = pair_.memory;
    if (!Team::kAlone && lane() == 0) memory.which = first, memory.number = eps;
    Team::meet();
    auto found = pair_.pricing().price(first, eps);
    if constexpr (!Team::kAlone) {
      Team::meet();
#pragma unroll
      for (int q = 0; q < Shape<P>::kColumnsPerLane; ++q) {
        const int k = (lane() + 32 * q) % P;
#pragma unroll
        for (int w = 1; w < Team::kSize; ++w) keep_lower(found, q, memory.lowest[w][k], memory.row[w][k]);
      }
    }
    transport_.complete(found);
    return found;
  }

  // From the gradient at T, or as it is, to a vertex. The others look for better cells whenever the simplex wants some.
  TFGW_DEVICE Outcome solve_linear_problem(bool rebuild, int max_sweeps) {
    const int newest = rebuild ? newest_ : This::kKeep;
    if (rebuild) publish_atoms(-4 * alpha_);
    if constexpr (!Team::kAlone) call(Task::gradient_and_prices, newest, 0);
    pair_.rebuild_gradient(newest);
    Team::meet();
    const Outcome outcome = transport_.solve(max_sweeps, [&](int first, double eps) { return price(first, eps); });
    if constexpr (!Team::kAlone) {
      if (lane() == 0) pair_.memory.which = -1;
      Team::meet();
      Team::meet();
    }
    return outcome;
  }

  TFGW_DEVICE void begin() {
    const Beginning from = pair_.begin();
    transport_.begin(from.arcs);
    if (alpha_ <= 0) return;
    base_ = p_.start ? Base::given : Base::product;
    only_atom(from.costs[0], from.costs[1]);
  }

  // The atom in place 0, whose cross term is in `new_cross`, is the iterate.
  TFGW_DEVICE void only_atom(double linear, double square) {
    live_ = 1, base_place_ = 0, newest_ = 0;
    weight_ = lane() == 0;
    linear_ = lane() == 0 ? linear : 0.0;
    if (lane() == 0) pair_.w.Q.set(0, 0, square);
    sync();
  }

  // Frank-Wolfe from the first atom. `result` gets everything but the two separate costs.
  TFGW_DEVICE void descend(PairResult& result) {
    const double structure_scale = alpha_ > 0 ? alpha_ * (p_.constant[b_] + p_.t_constant[k_]) : 0.0;
    const double* const linear_cost = pair_.begin().linear;
    bool lazy = false;
    while (true) {
      const bool tie_break = alpha_ > 0 && result.iterations == 0 && !p_.start;
      const bool last = result.iterations + 1 >= p_.max_iter;
      const Outcome outcome = solve_linear_problem(result.iterations > 0, lazy && !last ? kLazySweeps : 0);
      ++result.iterations;
      const bool moved = transport_.moved() || flow_ < 0;
      const bool unmoved_vertex = !moved && base_ == Base::vertex && live_ == u32(1) << flow_;
      const int fresh = lowest_bit(~live_);
      take_vertex(fresh);
      double linear = weight_ * linear_, squared = weight_ * quadratic();  // shares of (1−α)⟨M, T⟩ and ⟨T, X(T)⟩
      double sloped = 0, own_linear = 0;
      for (int e = lane(); e < n_ + m_; e += 32) {
        const Entry a = pair_.w.new_plan.entries[e];
        const int at = a.row * P + a.col;
        const double cost = linear_cost[at];
        // Where ties were broken, the gradient is not that of T, which is still the first atom.
        sloped += a.weight * (tie_break ? cost - 4 * alpha_ * pair_.w.new_cross[at] : pair_.w.gradient[at]);
        own_linear += a.weight * cost;
      }
      warp_sums(linear, squared, sloped, own_linear);
      sync();  // from here on, the gradient's memory serves other purposes
      const double value = structure_scale + linear - 2 * alpha_ * squared;
      const double scale = structure_scale + magnitude(linear);
      result.distance = value;
      result.gap = larger(0.0, linear - 4 * alpha_ * squared - sloped);

      const double tolerance = p_.tol * magnitude(value) + kRounding * scale;
      const bool flat = result.gap <= tolerance;
      lazy = !flat;  // while there is a way down, any vertex that leads there will do
      const bool stationary = flat && !tie_break;
      if (alpha_ > 0) {
        if (flat && outcome == Outcome::improved) continue;
        if (last) {
          result.status = stationary ? Status::converged : Status::max_iter;
          return;
        }
        if (stationary && unmoved_vertex) return;
      }
      const double mixed = from_lane(add_atom(fresh, own_linear), fresh);  // ⟨fresh, X(T)⟩
      if (alpha_ <= 0) {  // one linear problem, whose solution is all
        weight_ = lane() == 0, result.gap = 0;
        return;
      }
      const double own = pair_.w.Q.get(fresh, fresh);
      const double curvature = -2 * alpha_ * (own - 2 * mixed + squared);
      // A flat point may be a saddle: the vertex then lies downhill though the gradient does not say so.
      const bool saddle = curvature - result.gap < -4 * tolerance;
      if (flat && !saddle) {
        live_ &= ~(u32(1) << fresh);
        if (stationary) return;
        continue;
      }
      line_search(fresh, result.gap, curvature);
    }
  }

  // Exact minimum on the segment from T to the newest vertex, then over the hull of all vertices in use.
  TFGW_DEVICE void line_search(int fresh, double gap, double curvature) {
    const double step = curvature > 0 ? smaller(1.0, gap / (2 * curvature)) : 1.0;
    weight_ = lane() == fresh ? step : weight_ * (1 - step);
    if (step < 1 && bits_set(live_) > 2) {  // of two, the segment is the hull
      const bool small = live_ >> AtomMatrix::kSmall == 0;
      weight_ = small ? descend_over_simplex<SmallMatrix>(pair_.w.Q, linear_, alpha_, pair_.w.qp, weight_)
                      : descend_over_simplex<AtomMatrix>(pair_.w.Q, linear_, alpha_, pair_.w.qp, weight_);
      weight_ /= warp_sum(weight_);
    }
    live_ = ballot(weight_ > 0);
    if (base_ != Base::vertex && !(live_ >> base_place_ & 1)) base_ = Base::vertex;
    if (live_ == ~0u) collapse();
  }

  // Out of room: the iterate itself becomes the only atom.
  TFGW_DEVICE void collapse() {
    double linear = weight_ * linear_, square = weight_ * quadratic();
    warp_sums(linear, square);
    publish_atoms(1);
    together(Task::cross_of_iterate);
    merge();
    for (int e = lane(); e < n_ * P; e += 32) pair_.w.given[e] = pair_.w.gradient[e];
    sync();
    base_ = Base::given;
    only_atom(linear, square);
  }

  // The iterate as a matrix, in the gradient's memory.
  TFGW_DEVICE void merge() {
    together(Task::merge, int(base_), base_ == Base::vertex ? 0.0 : from_lane(weight_, base_place_));
    add_plans(pair_.w.gradient);
  }

  // Tells everyone which atoms there are, and a multiple of their weights.
  TFGW_DEVICE void publish_atoms(double factor) {
    pair_.memory.factor[This::leader()][lane()] = factor * weight_;
    if (lane() == 0) pair_.memory.atoms[This::leader()] = live_;
    sync();
  }

  // The flow that the simplex found, as the plan of atom `s`.
  TFGW_DEVICE void take_vertex(int s) {
    Entry* const kept = pair_.w.plan(s);
    Entry* const entries = pair_.w.new_plan.entries;
    for (int i = lane(); i < n_; i += 32) pair_.w.new_plan.more[i] = {};
    sync();
    transport_.tree().for_each_arc([&](int row, int col, i64 flow, bool row_is_child) {
      const int at = row_is_child ? row : n_ + col;
      kept[at] = entries[at] = {double(flow) * kMassUnit, row, col};
      if (!row_is_child && flow > 0) set_bits(&pair_.w.new_plan.more[row].word[col >> 5], u32(1) << (col & 31));
    });
    if (lane() == 0) kept[n_ + m_ - 1] = entries[n_ + m_ - 1] = {0, 0, m_ - 1};  // nothing is above the root
    flow_ = s;
    sync();
  }

  // Returns ⟨atom, X(T)⟩ for each lane's atom.
  TFGW_DEVICE double add_atom(int fresh, double linear) {
    if (lane() == fresh) linear_ = linear, weight_ = 0;
    live_ |= u32(1) << fresh;
    if (!has_structure(p_)) return 0;
    together(Task::cross_of_plan, fresh);
    newest_ = fresh;
    constexpr int kAtoms = Team::kAlone ? 2 : 4;  // at a time: their cross terms are far
    u32 left = live_ & ~(u32(1) << fresh);
#pragma unroll 1
    do {
      int atom[kAtoms];
      const double* X[kAtoms];
      double own = 0, q[kAtoms] = {};
#pragma unroll
      for (int s = 0; s < kAtoms; ++s) {
        atom[s] = left ? lowest_bit(left) : s ? atom[0] : fresh;
        left &= left - 1;
        X[s] = pair_.w.cross(atom[s]);
      }
#pragma unroll 1
      for (int e = lane(); e < n_ + m_; e += 32) {
        const Entry a = pair_.w.new_plan.entries[e];
        const int at = a.row * P + a.col;
        own += a.weight * pair_.w.new_cross[at];
#pragma unroll
        for (int s = 0; s < kAtoms; ++s) q[s] += a.weight * X[s][at];
      }
      if constexpr (kAtoms == 2) warp_sums(own, q[0], q[1]);
      else warp_sums(own, q[0], q[1], q[2], q[3]);
      if (lane() == 0) {
#pragma unroll
        for (int s = 0; s < kAtoms; ++s) pair_.w.Q.set(atom[s], fresh, q[s]), pair_.w.Q.set(fresh, atom[s], q[s]);
        pair_.w.Q.set(fresh, fresh, own);
      }
    } while (left);
    sync();
    return quadratic();
  }

  // ⟨atom, X(T)⟩ for each lane's atom: Σ_t Q_st w_t.
  TFGW_DEVICE double quadratic() const {
    double q = 0;
#pragma unroll 1
    for (u32 left = live_; left; left &= left - 1) {
      const int t = lowest_bit(left);
      const double w = from_lane(weight_, t);
      if (live_ >> lane() & 1) q += pair_.w.Q.get(lane(), t) * w;
    }
    return q;
  }

  // Adds what the vertices have in the iterate T.
  TFGW_DEVICE void add_plans(double* out) {
    for (u32 left = live_; left; left &= left - 1) {
      const int s = lowest_bit(left);
      if (base_ != Base::vertex && s == base_place_) continue;
      const Entry* const entries = pair_.w.plan(s);
      const double w = from_lane(weight_, s);
#pragma unroll 1
      for (int e = lane(); e < n_ + m_; e += 32) {
        const Entry a = entries[e];
        if (a.weight > 0) out[a.row * P + a.col] += w * a.weight;  // the root's entry is at another one's place
      }
      sync();
    }
  }

  TFGW_DEVICE void keep_potentials() {
    for (int i = lane(); i < n_; i += 32) pair_.potentials().rows[i] = pair_.published().row(i);
    for (int k = lane(); k < m_; k += 32) pair_.potentials().cols[k] = pair_.published().col(k);
    sync();
  }

  // Both terms at the plan that was kept, whatever α: it may be learned, and its gradient is their difference.
  TFGW_DEVICE void split_costs(PairResult& result) {
    if (alpha_ < 1) {
      result.feature_cost = warp_sum(weight_ * linear_) / (1 - alpha_);
    } else {
      double sum = 0;
#pragma unroll 1
      for (int e = lane(); e < n_ * P; e += 32)
        if (e % P < m_ && pair_.w.gradient[e] > 0)
          sum += pair_.w.gradient[e] * squared_distance(p_, pair_.graph.first + e / P, k_, pair_.live(e % P));
      result.feature_cost = warp_sum(sum);
    }
    if (has_structure(p_)) {
      const double squared = warp_sum(weight_ * quadratic());
      result.structure_cost = larger(0.0, p_.constant[b_] + p_.t_constant[k_] - 2 * squared);
    }
    result.distance = alpha_ * result.structure_cost + (1 - alpha_) * result.feature_cost;
  }

  This pair_;
  const Problem& p_;
  const int b_, k_, n_, m_;
  const double alpha_;
  Transport<Tree> transport_;
  u32 live_ = 0;                       // places in use
  Base base_ = Base::vertex;           // what sits in base_place_, unless a vertex
  int base_place_ = 0;
  int newest_ = -1;                    // whose cross term is in `new_cross`
  int flow_ = -1;                      // whose plan the flow of the simplex was, when it was last taken
  double weight_ = 0, linear_ = 0;     // of this lane's atom: weight, and (1−α)⟨M, plan⟩
};

// The pair's frame must be there. Called by all warps of the team. A function of its own, so that each kind gets
// registers as if it were the only one.
template <class Kind>
TFGW_FUNCTION void solve_pair() {
  using Team = typename Kind::Team;
  if (Team::warp() == 0) {
    FgwSolver<Kind>().lead();
  } else {
    const auto& memory = block_memory<Kind::Tree::kColumns>();
    while (true) {
      Team::meet();
      const Task task = Task(memory.task);
      if (task == Task::done) break;
      perform<Kind>(task, memory.which, memory.number);
      Team::meet();
    }
  }
  Team::meet();
}

}  // namespace tfgw

// Kernel `solve`: Fused Gromov-Wasserstein of one pair, the counterpart of cpp/fgw.cpp, which explains it. All warps of
// the team run it on the same numbers and share the work on matrices (pair.cuh) and arcs. Vertices ("atoms") have 32
// slots; lane s of each warp holds the weight and the linear cost of the atom in slot s.
#pragma once

#include "pair.cuh"

namespace tfgw {

template <class Kind>
class FgwSolver {
  using Tree = typename Kind::Tree;
  using Team = typename Kind::Team;
  static constexpr int P = Tree::kColumns;

 public:
  TFGW_DEVICE FgwSolver()
      : p_(block_memory<P>().problem), frame_(pair_.frame), n_(pair_.n), m_(pair_.m),
        transport_(pair_.tree_memory, n_, m_, frame_.rows_at_once, pair_.w.gradient, p_.supply + frame_.graph.first,
                   pair_.w.row_arrays, &pair_.memory.leader_state) {}

  TFGW_DEVICE void run() {
    PairResult result;
    pair_.load();
    Team::sync();
    begin();
    descend(result, SingleStartPlan{*this});
    merge();
    split_costs(result);
    bound_gap(result);
    keep_potentials();
    if (p_.plan) pair_.write_plan();
    if (Team::warp() > 0) return;
    PairWriter<P, Team> writer(p_, frame_.graph, frame_.b, frame_.k, frame_.alpha, pair_.potentials());
    writer.write(result, pair_.w.gradient, pair_.w.given);
  }

 protected:
  // How the descent of a single start begins: with the gradient in memory, whose ties are broken at hh̄ᵀ.
  struct SingleStartPlan {
    const FgwSolver& solver;
    TFGW_DEVICE bool breaks_ties(int iteration) const {
      return solver.frame_.alpha > 0 && iteration == 0 && !solver.p_.start;
    }
    TFGW_DEVICE bool needs_gradient(int iteration) const { return iteration > 0; }
    TFGW_DEVICE i64 max_iter() const { return solver.p_.max_iter; }
    TFGW_DEVICE static bool is_from_cost() { return false; }  // whether the first atom is the first vertex
    TFGW_DEVICE static void begin_at_vertex() {}
  };

  // Solves the linear problem for the gradient at T, which is recomputed on request.
  TFGW_DEVICE Outcome solve_linear_problem(bool rebuild, int max_sweeps) {
    if (rebuild) {
      if (!linear_is_coming_) pair_.fetch_linear();
      linear_is_coming_ = false;
      publish_atoms(-4 * frame_.alpha);
      pair_.rebuild_gradient(live_, newest_);
      Team::sync();
    }
    return transport_.solve(max_sweeps, [&](int first, double eps) {
      auto found = pair_.price(first, eps);
      transport_.complete(found);
      return found;
    }, [&](double eps) {
      if (lane() == 0) pair_.memory.ignored[thread_in_block() / 32] = eps;
    });
  }

  TFGW_DEVICE void begin() {
    const InitialState from = pair_.begin();
    transport_.begin(from.arcs);
    if (frame_.alpha <= 0) return;
    base_ = p_.start ? Base::given : Base::product;
    only_atom(from.costs[0], from.costs[1]);
  }

  // The atom in slot 0, whose cross term is in `new_cross`, becomes the iterate.
  TFGW_DEVICE void only_atom(double linear, double square) {
    live_ = 1, base_place_ = 0, newest_ = 0;
    weight_ = lane() == 0;
    linear_ = lane() == 0 ? linear : 0.0;
    if (Team::thread() == 0) pair_.w.Q.set(0, 0, square);
    Team::sync();
  }

  // Frank-Wolfe from the first atom. Fills in `result`, except for the two separate costs.
  template <class DescentPlan>
  TFGW_DEVICE void descend(PairResult& result, DescentPlan descent) {
    bool lazy = false;
    while (true) {
      const bool tie_break = descent.breaks_ties(result.iterations);
      const bool last = result.iterations + 1 >= descent.max_iter();
      const Outcome outcome =
          solve_linear_problem(descent.needs_gradient(result.iterations), sweep_limit(lazy, last));
      ++result.iterations;
      const bool moved = transport_.moved() || flow_ < 0;
      const bool unmoved_vertex = !moved && base_ == Base::vertex && live_ == u32(1) << flow_;
      const int fresh = lowest_bit(~live_);
      // If ties were broken, the cost is not the gradient at T, which is still the first atom.
      const auto [linear, squared, sloped, own_linear, mixed] = measure_vertex(fresh, tie_break);
      take_vertex(fresh);  // from here on, the gradient's memory is reused
      const double value = objective(frame_.structure_scale, linear, frame_.alpha, squared);
      const double scale = objective_scale(frame_.structure_scale, linear);
      result.distance = value;
      result.gap = frank_wolfe_gap(linear, frame_.alpha, squared, sloped);

      const double tolerance = gap_tolerance(p_.tol, value, scale);
      const bool flat = result.gap <= tolerance;
      lazy = !flat;
      const bool stationary = flat && !tie_break;
      if (frame_.alpha > 0 && !descent.is_from_cost()) {
        if (flat && outcome == Outcome::improved) continue;
        if (last) {
          result.status = stationary ? Status::converged : Status::max_iter;
          return;
        }
        if (stationary && unmoved_vertex) return;
      }
      const double own = add_atom(fresh, own_linear);
      if (frame_.alpha <= 0) {  // a linear problem, solved
        weight_ = lane() == 0, result.gap = 0;
        return;
      }
      if (descent.is_from_cost()) {
        weight_ = lane() == 0, result.iterations = 0, lazy = false;
        descent.begin_at_vertex();
        continue;
      }
      const double curvature = segment_curvature(frame_.alpha, own, mixed, squared);
      const bool saddle = is_saddle(curvature, result.gap, tolerance);
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
    const double step = line_search_step(gap, curvature);
    weight_ = lane() == fresh ? step : weight_ * (1 - step);
    if (step < 1 && popc(live_) > 2) {  // the hull of two vertices is the segment
      if (Team::warp() == 0) {
        const bool small = live_ >> Kind::kAtoms == 0;
        const auto& Q = pair_.w.Q;
        const auto& memory = pair_.w.qp;
        weight_ = small ? descend_over_simplex<SmallMatrix<Kind::kAtoms>>(Q, linear_, frame_.alpha, memory, weight_)
                        : descend_over_simplex<AtomMatrix<Kind::kAtoms>>(Q, linear_, frame_.alpha, memory, weight_);
        weight_ /= warp_sum(weight_);
        if (!Team::kSingleWarp) pair_.w.qp.move[lane()] = weight_;
      }
      Team::sync();
      if (!Team::kSingleWarp) weight_ = pair_.w.qp.move[lane()];
    }
    live_ = ballot(weight_ > 0);
    if (base_ != Base::vertex && !(live_ >> base_place_ & 1)) base_ = Base::vertex;
    if (live_ == ~0u) collapse();
  }

  // All slots are in use: the iterate itself becomes the only atom.
  TFGW_DEVICE void collapse() {
    double linear = weight_ * linear_, square = weight_ * quadratic();
    warp_sums(linear, square);
    publish_atoms(1);
    pair_.cross_of_iterate(live_);
    merge();
    for (int e = Team::thread(); e < n_ * P; e += Team::kThreads) pair_.w.given[e] = pair_.w.gradient[e];
    Team::sync();
    base_ = Base::given;
    only_atom(linear, square);
  }

  // The iterate as a matrix, in the gradient's memory.
  TFGW_DEVICE void merge() {
    wait_for_copies();
    linear_is_coming_ = false;
    Team::sync();
    pair_.merge_base(base_, base_ == Base::vertex ? 0.0 : shfl(weight_, base_place_));
    Team::sync();
    add_plans(pair_.w.gradient);
  }

  // Writes the atoms' weights, times a factor, to shared memory.
  TFGW_DEVICE void publish_atoms(double factor) {
    pair_.memory.factor[thread_in_block() / 32][lane()] = factor * weight_;
    sync_warp();
  }

  // For the iterate: (1−α)⟨M, T⟩ and ⟨T, X(T)⟩. For the plan that the simplex found, which may become atom `fresh`:
  // ⟨gradient, plan⟩, (1−α)⟨M, plan⟩ and ⟨plan, X(T)⟩, with the gradient in memory or the one at the first atom.
  // Also writes ⟨plan, X(atom)⟩ to Q.
  struct Measures {
    double linear, squared, slope, own_linear, mixed;
  };
  TFGW_DEVICE Measures measure_vertex(int fresh, bool at_first_atom) {
    constexpr int kAtOnce = Team::kSingleWarp ? 2 : 4;  // atoms per pass: their cross terms are mostly in global memory
    const double* const linear_cost = frame_.linear;
    const double* const slopes = at_first_atom ? pair_.w.new_cross : pair_.w.gradient;
    struct Cell {
      double X[kAtOnce], cost, slope;
    };
    Measures sum;
    double squared = 0, mixed = 0;
    u32 left = live_;
#pragma unroll 1
    do {
      const bool first = left == live_;
      int atom[kAtOnce];
      const double* X[kAtOnce];
      double q[kAtOnce] = {}, share[kAtOnce];
#pragma unroll
      for (int s = 0; s < kAtOnce; ++s) {  // unused entries read the newest atom, which is in shared memory
        atom[s] = left ? lowest_bit(left) : newest_;
        share[s] = left ? shfl(weight_, atom[s]) : 0.0;
        left &= left - 1;
        X[s] = atom[s] == newest_ ? pair_.w.new_cross : pair_.w.cross(atom[s]);
      }
      const auto load = [&](int row, int col) {
        const int e = row * P + col;
        Cell cell;
        cell.cost = linear_cost[e], cell.slope = slopes[e];
#pragma unroll
        for (int s = 0; s < kAtOnce; ++s) cell.X[s] = live_ ? X[s][e] : 0.0;  // without atoms, X is not a valid pointer
        return cell;
      };
      const auto of_iterate = [&] {
        if (first) squared = weight_ * quadratic();
        sum = {weight_ * linear_, squared, 0, 0, 0};
      };
      transport_.for_each_arc(load, of_iterate, [&](i64 flow, const Cell& cell) {
        const double mass = double(flow) * kMassUnit;
#pragma unroll
        for (int s = 0; s < kAtOnce; ++s) q[s] += mass * cell.X[s];
        sum.slope += mass * (at_first_atom ? cell.cost - 4 * frame_.alpha * cell.slope : cell.slope);
        sum.own_linear += mass * cell.cost;
      });
      if constexpr (kAtOnce == 2) {
        warp_sums(sum.linear, sum.squared, sum.slope, sum.own_linear, q[0], q[1]);
      } else {
        warp_sums(sum.linear, sum.squared, sum.slope, sum.own_linear, q[0], q[1], q[2], q[3]);
        pair_.add_over_team(sum.slope, sum.own_linear, q[0], q[1], q[2], q[3]);
      }
#pragma unroll
      for (int s = 0; s < kAtOnce; ++s) {
        mixed += share[s] * q[s];
        if (share[s] == 0 || Team::thread() > 0) continue;
        pair_.w.Q.set(atom[s], fresh, q[s]), pair_.w.Q.set(fresh, atom[s], q[s]);
      }
    } while (left);
    sum.mixed = mixed;
    return sum;
  }

  // Stores the flow that the simplex found as the plan of atom `s`.
  TFGW_DEVICE void take_vertex(int s) {
    Entry* const kept = pair_.w.plan(s);
    transport_.for_each_arc([&](int row, int col, i64 flow, bool row_is_child) {
      const int at = row_is_child ? row : n_ + col;
      kept[at] = pair_.w.new_plan[at] = {double(flow) * kMassUnit, row, col};
    });
    flow_ = s;
    Team::sync();
  }

  // Makes the plan that was taken an atom without weight. Returns ⟨plan, X(plan)⟩.
  TFGW_DEVICE double add_atom(int fresh, double linear) {
    if (lane() == fresh) linear_ = linear, weight_ = 0;
    live_ |= u32(1) << fresh;
    if (!has_structure(p_)) return 0;
    pair_.cross_of_plan(fresh);
    newest_ = fresh;
    Team::sync();
    pair_.fetch_linear();
    linear_is_coming_ = true;
    double own = 0;
    transport_.for_each_arc([&](int row, int col, i64 flow, bool) {
      own += double(flow) * kMassUnit * pair_.w.new_cross[row * P + col];
    });
    own = warp_sum(own);
    pair_.add_over_team(own);
    if (Team::thread() == 0) pair_.w.Q.set(fresh, fresh, own);
    Team::sync();
    return own;
  }

  // ⟨atom, X(T)⟩ for each lane's atom: Σ_t Q_st w_t.
  TFGW_DEVICE double quadratic() const {
    double q = 0;
#pragma unroll 1
    for (u32 left = live_; left; left &= left - 1) {
      const int t = lowest_bit(left);
      const double w = shfl(weight_, t);
      if (live_ >> lane() & 1) q += pair_.w.Q.get(lane(), t) * w;
    }
    return q;
  }

  // Adds the weighted vertices of the iterate T.
  TFGW_DEVICE void add_plans(double* out) {
    for (u32 left = live_; left; left &= left - 1) {
      const int s = lowest_bit(left);
      if (base_ != Base::vertex && s == base_place_) continue;
      const Entry* const entries = pair_.w.plan(s);
      const double w = shfl(weight_, s);
#pragma unroll 1
      for (int e = Team::thread(); e < n_ + m_ - 1; e += Team::kThreads) {  // the root has no parent arc
        const Entry a = entries[e];
        out[a.row * P + a.col] += w * a.weight;
      }
      Team::sync();
    }
  }

  TFGW_DEVICE void keep_potentials() {
    for (int i = Team::thread(); i < n_; i += Team::kThreads) pair_.potentials().rows[i] = pair_.published().row(i);
    for (int k = Team::thread(); k < m_; k += Team::kThreads) pair_.potentials().cols[k] = pair_.published().col(k);
    Team::sync();
  }

  // Both terms at the plan that was kept, whatever α: α may be learned, and its gradient is their difference.
  TFGW_DEVICE void split_costs(PairResult& result) {
    if (frame_.alpha < 1) {
      result.feature_cost = warp_sum(weight_ * linear_) / (1 - frame_.alpha);
    } else {
      double sum = 0;
#pragma unroll 1
      for (int e = lane(); e < n_ * P; e += 32)
        if (e % P < m_ && pair_.w.gradient[e] > 0)
          sum += pair_.w.gradient[e] * squared_distance(p_, frame_.graph.first + e / P, frame_.k, pair_.live(e % P));
      result.feature_cost = warp_sum(sum);
    }
    if (has_structure(p_)) {
      const double squared = warp_sum(weight_ * quadratic());
      result.structure_cost = structure_term(p_.constant[frame_.b] + p_.t_constant[frame_.k], squared);
    }
    result.distance = fma_rn(frame_.alpha, result.structure_cost, (1 - frame_.alpha) * result.feature_cost);
  }

  // The last linear problem ignored reduced costs that were rounding of its largest cost, so its optimum may be lower by
  // that much (all masses sum to 1). If this is more than rounding of the objective, or of the smallest cost that a
  // linear problem's plan pays, it counts as part of the gap. The C++ core refines such problems instead.
  TFGW_DEVICE void bound_gap(PairResult& result) const {
    sync_warp();
    const double ignored = pair_.memory.ignored[thread_in_block() / 32];
    const double scale = objective_scale(frame_.structure_scale, (1 - frame_.alpha) * result.feature_cost);
    bool counts = ignored > kOracleShare * scale;
    if (frame_.alpha <= 0) {
      counts = false;
      transport_.for_each_arc([&](int row, int col, i64 flow, bool) {
        const double cost = magnitude(frame_.linear[row * P + col]);
        counts |= flow > 0 && cost > 0 && ignored > kCostShare * cost;
      });
      counts = Team::any(counts);
    }
    if (!counts) return;
    result.gap += ignored;
    const bool is_small = result.gap <= gap_tolerance(p_.tol, result.distance, scale);
    if (result.status == Status::converged && !is_small) result.status = Status::imprecise;
  }

  Pair<Kind> pair_;
  const Problem& p_;
  const Frame& frame_;
  const int n_, m_;
  Transport<Tree, Team> transport_;
  u32 live_ = 0;                       // slots in use
  Base base_ = Base::vertex;           // kind of the atom in base_place_
  int base_place_ = 0;
  int newest_ = -1;                    // atom whose cross term is in `new_cross`
  int flow_ = -1;                      // atom whose plan is the flow of the simplex as last taken
  bool linear_is_coming_ = false;      // whether the linear cost is being copied to the gradient's memory
  double weight_ = 0, linear_ = 0;     // of this lane's atom: weight, and (1−α)⟨M, plan⟩
};

// Solves the pair whose frame is in shared memory. Called by all warps of the team. Not inlined, so that registers are
// allocated for each kind separately.
template <class Kind>
TFGW_NOINLINE void solve_pair() {
  FgwSolver<Kind>().run();
  Kind::Team::sync();
}

}  // namespace tfgw

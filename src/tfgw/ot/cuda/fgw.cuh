// Third kernel: Fused Gromov-Wasserstein of one pair, the counterpart of cpp/fgw.cpp, which explains it. The leading warp
// runs the algorithm; what goes over whole matrices is a `Task` for all warps of the team (pair.cuh).
// Vertices ("atoms") sit in 32 places; the leader's lane s holds the weight and the linear cost of the atom in place s.
#pragma once

#include "pair.cuh"
#include "transport.cuh"

namespace tfgw {

constexpr int kLazySweeps = 2;
constexpr int kTieHops = 3;
constexpr double kTieShare = 1e-6;
constexpr double kRounding = 1e-14;

template <class Kind>
class FgwSolver {
  using Tree = typename Kind::Tree;
  using Team = typename Kind::Team;
  using This = Pair<Kind>;
  static constexpr bool kNear = Kind::kNear;
  static constexpr int P = Tree::kColumns;

 public:
  TFGW_DEVICE FgwSolver()
      : p_(block_memory<P>().problem), b_(pair_.b), k_(pair_.k), n_(pair_.n), m_(pair_.m), alpha_(pair_.alpha),
        transport_(pair_.tree_memory, n_, m_, pair_.rows_at_once, pair_.w.gradient, p_.demand + i64(k_) * P,
                   pair_.first_basis(), pair_.w.row_arrays) {}

  TFGW_DEVICE void lead() {
    PairResult result;
    together(Task::load);
    if (alpha_ > 0) first_start();
    descend(result);
    const double base = base_ == Base::vertex ? 0.0 : from_lane(weight_, base_place_);
    together(Task::merge, int(base_), base);
    add_plans(pair_.w.gradient);  // which is not needed any more
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
    perform<Kind>(task, which, number);
    Team::meet();
  }
  TFGW_DEVICE void call(Task task, int which, double number) {
    BlockMemory<P>& memory = pair_.memory;
    if (!Team::kAlone && lane() == 0) memory.task = int(task), memory.which = which, memory.number = number;
    Team::meet();
  }

  // What the warps answered.
  template <class Combine>
  TFGW_DEVICE double all_shares(Combine combine) const {
    double all = pair_.memory.share[This::leader()];
#pragma unroll
    for (int w = 1; w < Team::kSize; ++w) all = combine(all, pair_.memory.share[w]);
    return all;
  }
  TFGW_DEVICE typename Transport<Tree>::Found price(int first, double eps) {
    typename Transport<Tree>::Found found;
    if constexpr (Team::kAlone) {  // the most frequent task: without a detour through memory
      sync();
      found = pair_.pricing().price(first, eps);
    } else {
      together(Task::price, first, eps);
      const BlockMemory<P>& memory = pair_.memory;
#pragma unroll
      for (int q = 0; q < Shape<P>::kColumnsPerLane; ++q) {
        const int k = (lane() + 32 * q) % P;
        found.lowest[q] = memory.lowest[0][k], found.row[q] = memory.row[0][k];
#pragma unroll
        for (int w = 1; w < Team::kSize; ++w) keep_lower(found, q, memory.lowest[w][k], memory.row[w][k]);
      }
    }
    transport_.complete(found);
    return found;
  }

  // What the caller gives, or hh̄ᵀ, of which everything has a closed form.
  TFGW_DEVICE void first_start() {
    if (p_.start) {
      round_to_marginals();
      restart_ = true;
      return;
    }
    base_ = Base::product;
    together(Task::product_start);
    double graph_mean = 0, template_mean = 0;
    for (int i = lane(); i < n_; i += 32) graph_mean += pair_.h(i) * p_.out_mean[pair_.graph.first + i];
    for (int k = lane(); k < m_; k += 32) template_mean += pair_.t_h(k) * p_.t_mean_out[i64(k_) * P + k];
    warp_sums(graph_mean, template_mean);
    only_atom(all_shares([](double a, double b) { return a + b; }), graph_mean * template_mean);
  }

  // `given` becomes the only atom.
  TFGW_DEVICE void start_from_given() {
    restart_ = false;
    base_ = Base::given;
    if constexpr (kNear)
      for (int e = lane(); e < n_ * P; e += 32) pair_.w.new_cross[e] = pair_.w.given[e];
    apply_to_matrix(kNear ? 0 : This::kGiven, 0);
    together(Task::keep_cross, 0);
    double linear = 0, square = 0;
#pragma unroll 1
    for (int e = lane(); e < n_ * P; e += 32)
      if (e % P < m_) linear += pair_.w.given[e] * pair_.w.linear[e], square += pair_.w.given[e] * pair_.w.new_cross[e];
    warp_sums(linear, square);
    only_atom(linear, square);
  }

  // The atom in place 0, whose cross term is in `new_cross`, is the iterate.
  TFGW_DEVICE void only_atom(double linear, double square) {
    live_ = 1, base_place_ = 0, newest_ = 0;
    weight_ = lane() == 0;
    linear_ = lane() == 0 ? linear : 0.0;
    if (lane() == 0) pair_.w.Q.at(0, 0) = square;
    sync();
  }

  // A coupling near the one that the caller gives, which may miss its marginals by rounding: rows and columns that are
  // too heavy shrink, and what is then missing is spread as a product.
  TFGW_DEVICE void round_to_marginals() {
    double* T = pair_.w.given;
    double *row_left = pair_.w.gradient, *col_left = pair_.w.new_cross;
    const double* start = p_.start + (i64(pair_.graph.first) * p_.templates + k_) * p_.columns;
    const i64 stride = p_.templates * p_.columns;
#pragma unroll 1
    for (int i = lane(); i < n_; i += 32) {
      double sum = 0;
#pragma unroll 1
      for (int k = 0; k < m_; ++k) sum += T[i * P + k] = larger(0.0, start[i * stride + pair_.live(k)]);
      const double shrink = sum > pair_.h(i) ? pair_.h(i) / sum : 1.0;
#pragma unroll 1
      for (int k = 0; k < P; ++k) T[i * P + k] = k < m_ ? T[i * P + k] * shrink : 0.0;
    }
    sync();
#pragma unroll 1
    for (int k = lane(); k < m_; k += 32) {
      double sum = 0;
#pragma unroll 1
      for (int i = 0; i < n_; ++i) sum += T[i * P + k];
      const double shrink = sum > pair_.t_h(k) ? pair_.t_h(k) / sum : 1.0;
#pragma unroll 1
      for (int i = 0; i < n_; ++i) T[i * P + k] *= shrink;
      col_left[k] = larger(0.0, pair_.t_h(k) - sum * shrink);
    }
    sync();
    double missing = 0;
#pragma unroll 1
    for (int i = lane(); i < n_; i += 32) {
      double sum = 0;
#pragma unroll 1
      for (int k = 0; k < m_; ++k) sum += T[i * P + k];
      missing += row_left[i] = larger(0.0, pair_.h(i) - sum);
    }
    missing = warp_sum(missing);
    sync();
#pragma unroll 1
    for (int e = lane(); e < n_ * P && missing > 0; e += 32)
      if (e % P < m_) T[e] += row_left[e / P] * col_left[e % P] / missing;
    sync();
  }

  // Frank-Wolfe from the first atom. `result` gets everything but the two separate costs.
  TFGW_DEVICE void descend(PairResult& result) {
    const double structure_scale = alpha_ > 0 ? alpha_ * (p_.constant[b_] + p_.t_constant[k_]) : 0.0;
    bool lazy = false;
    while (true) {
      if (restart_) start_from_given();
      rebuild_gradient();
      const bool tie_break = alpha_ > 0 && result.iterations == 0 && !p_.start;
      const bool last = result.iterations + 1 >= p_.max_iter;
      if (tie_break) break_ties();
      if (result.iterations == 0) first_basis();
      const auto price_together = [&](int first, double eps) { return price(first, eps); };
      const Outcome outcome = transport_.solve(lazy && !last ? kLazySweeps : 0, price_together);
      if (tie_break) rebuild_gradient();
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
        sloped += a.weight * pair_.w.gradient[at], own_linear += a.weight * pair_.w.linear[at];
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
      const double own = pair_.w.Q.at(fresh, fresh);
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

  // The simplex begins where rows ship greedily; `new_cross` serves on the way.
  TFGW_DEVICE void first_basis() {
    newest_ = -1;
    together(Task::regrets);
    together(Task::order_rows);
    transport_.greedy_basis();
    sync();
  }

  // Exact minimum on the segment from T to the newest vertex, then over the hull of all vertices in use.
  TFGW_DEVICE void line_search(int fresh, double gap, double curvature) {
    const double step = curvature > 0 ? smaller(1.0, gap / (2 * curvature)) : 1.0;
    weight_ = lane() == fresh ? step : weight_ * (1 - step);
    if (step < 1) {
      weight_ = descend_over_simplex(pair_.w.Q, linear_, alpha_, pair_.w.qp, weight_);
      weight_ /= warp_sum(weight_);
    }
    live_ = ballot(weight_ > 0);
    if (base_ != Base::vertex && !(live_ >> base_place_ & 1)) base_ = Base::vertex;
    if (live_ == ~0u) {  // out of room: the iterate itself becomes the only atom
      const double base = base_ == Base::vertex ? 0.0 : from_lane(weight_, base_place_);
      together(Task::merge, int(base_), base);
      add_plans(pair_.w.gradient);
      for (int e = lane(); e < n_ * P; e += 32) pair_.w.given[e] = pair_.w.gradient[e];
      sync();
      restart_ = true;
    }
  }

  TFGW_DEVICE const double* cross(int s) const { return s == newest_ ? pair_.w.new_cross : pair_.w.cross(s); }

  TFGW_DEVICE void rebuild_gradient() {
    int first = This::kFirstAtom;
    for (u32 left = live_; left; left &= left - 1) {
      const int s = lowest_bit(left);
      together(Task::gradient, s | first | (s == newest_ ? This::kNewestAtom : 0), -4 * alpha_ * from_lane(weight_, s));
      first = 0;
    }
    if (!live_) together(Task::gradient, This::kFirstAtom | This::kNoAtom, 0);  // the linear cost is all
  }

  // Ties of the first linear problem are broken by how alike the surroundings of two nodes are:
  // S₀ = (1−α) F F̄ᵀ + α, Sₜ₊₁ ∝ X(Sₜ).
  TFGW_DEVICE void break_ties() {
    const auto highest = [](double a, double b) { return larger(a, b); };
    newest_ = -1;
    together(Task::similarity);
    const double largest = all_shares(highest);
    int now = 0, next = pair_.halves() == 1 ? 0 : This::kGiven, hops = 0;  // two halves need `now` twice
    while (hops < kTieHops) {
      apply_to_matrix(now, next);
      together(Task::peak, next);
      const double peak = all_shares(highest);
      if (peak == 0) break;
      together(Task::scale, next | This::kAtom * hops++, 1 / peak);
      const int before = now;
      now = next, next = before;
    }
    rebuild_gradient();
    together(Task::add_hops, hops, kTieShare * largest);
  }

  // to = X(from), both as tasks have them.
  TFGW_DEVICE void apply_to_matrix(int from, int to) {
    for (int half = 0; half < pair_.halves(); ++half) {
      together(Task::matrix_times_template, from | half);
      together(Task::structure_times, to | half);
    }
    if (pair_.halves() == 2) together(Task::average, to);
  }

  // new_cross = X(new_plan), which is the plan of atom s.
  TFGW_DEVICE void apply_to_plan(int s) {
    const bool structure_first = pair_.structure_first();
    const int kept = pair_.halves() == 1 ? This::kAtom * (s + 1) : 0;
    for (int half = 0; half < pair_.halves(); ++half) {
      together(structure_first ? Task::structure_times_plan : Task::plan_times_template, half);
      together(structure_first ? Task::times_template : Task::structure_times, half | kept);
    }
    if (!kept) {
      together(Task::average);
      together(Task::keep_cross, s);
    }
    newest_ = s;
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

  // This lane's share of ⟨new plan, matrix⟩.
  TFGW_DEVICE double share_of_dot(const double* matrix) const {
    double sum = 0;
#pragma unroll 1
    for (int e = lane(); e < n_ + m_; e += 32) {
      const Entry a = pair_.w.new_plan.entries[e];
      sum += a.weight * matrix[a.row * P + a.col];
    }
    return sum;
  }

  // Returns ⟨atom, X(T)⟩ for each lane's atom.
  TFGW_DEVICE double add_atom(int fresh, double linear) {
    if (lane() == fresh) linear_ = linear, weight_ = 0;
    live_ |= u32(1) << fresh;
    if (!has_structure(p_)) return 0;
    apply_to_plan(fresh);
#pragma unroll 1
    for (u32 left = live_; left;) {  // two at a time
      const int s = lowest_bit(left);
      left &= left - 1;
      const int t = left ? lowest_bit(left) : s;
      left &= left - 1;
      double q_s = share_of_dot(cross(s)), q_t = share_of_dot(cross(t));
      warp_sums(q_s, q_t);
      if (lane() == 0) {
        pair_.w.Q.at(s, fresh) = pair_.w.Q.at(fresh, s) = q_s;
        pair_.w.Q.at(t, fresh) = pair_.w.Q.at(fresh, t) = q_t;
      }
    }
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
      if (live_ >> lane() & 1) q += pair_.w.Q.at(lane(), t) * w;
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

  const This pair_;
  const Problem& p_;
  const int b_, k_, n_, m_;
  const double alpha_;
  Transport<Tree> transport_;
  u32 live_ = 0;                       // places in use
  Base base_ = Base::vertex;           // what sits in base_place_, unless a vertex
  int base_place_ = 0;
  bool restart_ = false;               // from what is in `given`
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

// Kernel `starts`: the descent from one of several starts. After a descent, entries of the plan are exchanged while that
// lowers E, with a new descent after each exchange. The best start of a pair writes the results.
#pragma once

#include "exchange.cuh"
#include "fgw.cuh"

namespace tfgw {

// Where a team finds its start. For `starts_small`, `shared_size` is the size of its own blocks.
template <class Kind>
TFGW_DEVICE StartsBlock& starts_block() {
  const Problem& p = block_memory<Kind::Tree::kColumns>().problem;
  return *reinterpret_cast<StartsBlock*>(dynamic_shared_memory() + p.shared_size);
}
template <class Kind>
TFGW_DEVICE CurrentStart& current_start() {
  return starts_block<Kind>().current[Kind::Team::kSingleWarp ? thread_in_block() / 32 : 0];
}

template <class Kind>
class StartSolver : private FgwSolver<Kind> {
  using Base_ = FgwSolver<Kind>;
  using Team = typename Kind::Team;
  static constexpr int P = Kind::Tree::kColumns;
  using Base_::pair_, Base_::p_, Base_::frame_, Base_::n_, Base_::m_, Base_::weight_, Base_::live_, Base_::base_;

 public:
  TFGW_DEVICE StartSolver()
      : starts_(starts_block<Kind>().starts), now_(current_start<Kind>()), at_(starts_memory<P>(frame_)),
        started_(started_pair(p_, frame_.graph, frame_.b, frame_.k)) {}

  TFGW_DEVICE void run() {
    PairResult result;
    const bool improves = starts_.count > 1 && frame_.alpha > 0;
    DescentPlan descent = begin();
    int before = 0, rounds = 0;
#pragma unroll 1
    while (true) {
      this->descend(result, descent);
      result.iterations += before;
      take_plan();
      if (!improves) break;
      rebuild_gradient();
      before = result.iterations;
      if (result.status != Status::converged || rounds++ == kMaxExchanges) break;
      if (p_.max_iter - before < 1) break;
      find_exchange<Kind>(least_gain(result.distance, frame_.structure_scale));
      const Exchange found = *at_.exchange;
      if (!found.exists()) break;
      apply(found);
      descent = {false, false, false, p_.max_iter - before};
      result.iterations = 0;
    }
    if (starts_.value && Team::thread() == 0)
      starts_.value[started_.index * starts_.count + now_.start] = result.distance;
    if (starts_.gradient && improves) keep_minimum(result.distance);
    keep_if_best(result);
  }

 private:
  // How a descent begins: at hh̄ᵀ with its ties broken, at a cost whose optimal vertex is the first atom, or elsewhere.
  struct DescentPlan {
    bool at_product, from_cost, has_gradient;
    i64 iterations;
    TFGW_DEVICE bool breaks_ties(int iteration) const { return iteration == 0 && at_product; }
    TFGW_DEVICE bool needs_gradient(int iteration) const { return iteration > 0 || !has_gradient; }
    TFGW_DEVICE i64 max_iter() const { return iterations; }
    TFGW_DEVICE bool is_from_cost() const { return from_cost; }
    TFGW_DEVICE void begin_at_vertex() { from_cost = has_gradient = false; }
  };

  TFGW_DEVICE DescentPlan begin() {
    const int kind = *kind_at(starts_, started_, now_.item);
    const bool is_linear = frame_.alpha <= 0, has_atom = kind == kUniform || kind == kGiven;
    pair_.load(cost_of(p_, starts_, started_, now_.item));
    if (!is_linear && has_atom) load_atom(kind == kGiven);
    Team::sync();
    this->transport_.begin(arcs_of(p_, starts_, started_, now_.item));
    if (!is_linear && has_atom) {
      base_ = kind == kGiven ? Base::given : Base::product;
      const double* const costs = kind == kGiven ? pair_.begin().costs : starts_.at_product + 2 * started_.index;
      this->only_atom(costs[0], costs[1]);
    }
    return {!is_linear && kind == kUniform, !is_linear && !has_atom, true, p_.max_iter};
  }

  // hh̄ᵀ or the given plan. Other starts begin with a vertex that is not known yet.
  TFGW_DEVICE void load_atom(bool is_given) {
    const ProductCross<P> product(p_, frame_.graph, frame_.k, Team::thread() % P);
    const InitialState given = pair_.begin();
    each_entry<P, Team>(n_, [&](int e, int i, int) {
      pair_.w.new_cross[e] = pair_.w.cross(0)[e] = is_given ? given.cross[e] : product.at(i);
      if (is_given) pair_.w.given[e] = given.given[e];
    });
  }

  // Stores the iterate, and the columns that each of its rows uses.
  TFGW_DEVICE void take_plan() {
    constexpr int kWords = Shape<P>::kColumnsPerLane;
    this->merge();
#pragma unroll 2
    for (int i = Team::warp(); i < n_; i += Team::kSize)
#pragma unroll
      for (int q = 0; q < kWords; ++q) {
        const int k = lane() + 32 * q, e = i * P + (k < P ? k : 0);
        const double mass = pair_.w.gradient[e];
        const u32 used = ballot(k < m_ && mass > 0);
        if (k < P) at_.plan[e] = mass;
        if (lane() == 0) at_.used[i * kWords + q] = used;
      }
    Team::sync();
  }
  TFGW_DEVICE void rebuild_gradient() {
    pair_.fetch_linear();
    this->publish_atoms(-4 * frame_.alpha);
    pair_.rebuild_gradient(live_, this->newest_);
    Team::sync();
  }

  // The plan after the exchange becomes the only atom. Its X differs by −t (C u) (C̄ v)ᵀ, with u = eᵢ − eⱼ and
  // v = eₖ − eₗ, or by the mean of that and the same with transposed matrices.
  TFGW_DEVICE void apply(const Exchange& found) {
    const int i = found.i, j = found.j, k = found.k, l = found.l;
    const double t = found.mass;
    double linear = weight_ * this->linear_, square = weight_ * this->quadratic();
    warp_sums(linear, square);
    this->publish_atoms(1);
    pair_.cross_of_iterate(live_);
    find_differences<Kind>(i, j);
    const auto moved = [&](const double* matrix) {
      return matrix[i * P + l] + matrix[j * P + k] - matrix[i * P + k] - matrix[j * P + l];
    };
    linear += t * moved(frame_.linear);
    square += 2 * t * moved(pair_.w.new_cross) + t * t * found.curvature;
    Team::sync();
    if (Team::thread() == 0) {
      at_.plan[i * P + l] += t, at_.plan[j * P + k] += t;
      at_.plan[i * P + k] -= t, at_.plan[j * P + l] -= t;
    }
    Team::sync();
    const bool symmetric = frame_.graph.symmetric;
    const int q = Team::thread() % P;
    const double* const C = (symmetric ? p_.mean : p_.C) + i64(frame_.k) * P * P;
    const double* const Ct = (symmetric ? p_.mean : p_.Ct) + i64(frame_.k) * P * P;
    const double column = C[q * P + k] - C[q * P + l], row = Ct[q * P + k] - Ct[q * P + l];
    each_entry<P, Team>(n_, [&](int e, int r, int) {
      const double by_columns = at_.column_difference[r] * column;
      const double change = symmetric ? by_columns : 0.5 * (by_columns + at_.row_difference[r] * row);
      const double x = pair_.w.new_cross[e] - t * change;
      pair_.w.new_cross[e] = pair_.w.cross(0)[e] = x;
      pair_.w.given[e] = at_.plan[e];
    });
    Team::sync();
    base_ = Base::given;
    this->only_atom(linear, square);
  }

  // For starts that depend on this one. The gradient is in memory.
  TFGW_DEVICE void keep_minimum(double value) {
    const int s = now_.start, round = round_of(starts_, s);
    int slot = has_fresh_kinds(starts_.kinds) ? s % kStartsPerRound : 0;
    if (starts_.wave >= 0) {
      if (Team::thread() == 0) now_.decision = lowest_of(p_, starts_, started_, round).add(value);
      Team::sync();
      slot = now_.decision;
      Team::sync();
    }
    if (slot < 0) return;
    double* const to = minima_of(p_, starts_, started_, round) + i64(slot) * n_ * P;
    each_entry<P, Team>(n_, [&](int e, int, int) { to[e] = pair_.w.gradient[e]; });
  }

  // Writes the results if no start so far is better. Starts may end in any order, also in other blocks.
  TFGW_DEVICE void keep_if_best(PairResult& result) {
    BestStart& best = starts_.best[started_.index];
    const double floor = value_floor(frame_.structure_scale), value = result.distance;
    const auto end = [&](double v, int s) { return StartEnd{v <= floor, value_key(i64(bits_of(v))), s}; };
    if (Team::warp() == 0) {
      while (shfl(lane() == 0 ? atomic_exchange(&best.lock, 1) : 0, 0)) sync_warp();
      if (lane() == 0) {
        fence();
        const int other = read_fresh(&best.start);
        now_.decision = other < 0 || is_kept(end(value, now_.start), end(read_fresh(&best.value), other));
      }
    }
    Team::sync();
    if (now_.decision) write(result);
    Team::sync();
    if (Team::thread() == 0) {
      if (now_.decision) best.value = value, best.start = now_.start;
      if (value <= floor) atomic_min(&best.at_floor, now_.start);
      fence();
      atomic_exchange(&best.lock, 0);
    }
    Team::sync();
  }

  TFGW_DEVICE void write(PairResult& result) {
    each_entry<P, Team>(n_, [&](int e, int, int) { pair_.w.gradient[e] = at_.plan[e]; });
    Team::sync();
    this->split_costs(result);
    this->bound_gap(result);
    for (int i = Team::thread(); i < n_; i += Team::kThreads) at_.row_potential[i] = pair_.published().row(i);
    for (int k = Team::thread(); k < m_; k += Team::kThreads) pair_.w.new_cross[k] = pair_.published().col(k);
    Team::sync();
    PairWriter<P, Team> writer(p_, frame_.graph, frame_.b, frame_.k, frame_.alpha,
                               {at_.row_potential, pair_.w.new_cross});
    if (p_.plan) writer.write_plan(pair_.w.gradient);
    if (Team::warp() == 0) writer.write(result, pair_.w.gradient, pair_.w.given);
  }

  const Starts& starts_;
  CurrentStart& now_;
  const StartsMemory<P> at_;
  const StartedPair started_;
};

// Not inlined, so that registers are allocated for each kind separately.
template <class Kind>
TFGW_NOINLINE void solve_start() {
  StartSolver<Kind>().run();
  Kind::Team::sync();
}

}  // namespace tfgw

// Third kernel: Fused Gromov-Wasserstein of one pair by one warp, the counterpart of cpp/fgw.cpp, which explains it.
// Vertices ("atoms") sit in 32 places; lane s holds the weight and the linear cost of the atom in place s.
#pragma once

#include "results.cuh"
#include "transport.cuh"

namespace tfgw {

constexpr int kLazySweeps = 2;
constexpr int kTieHops = 3;
constexpr double kTieShare = 1e-6;
constexpr double kRounding = 1e-14;

template <class Tree>
class FgwSolver {
  static constexpr int P = Tree::kColumns;

 public:
  TFGW_DEVICE FgwSolver(const Problem& p, typename Tree::Memory& memory, const Arena& arena, int b, int k)
      : p_(p), b_(b), k_(k), graph_(graph_view(p, b)), n_(graph_.n), m_(p.live_count[k]),
        alpha_(has_structure(p) ? p.alpha[k] : 0.0), w_(arena, n_), transport_(memory),
        cross_(p, graph_, k, m_, w_.gradient, w_.half) {}

  TFGW_DEVICE void solve() {
    PairResult result;
    for (int i = lane(); i < n_; i += 32) w_.supply[i] = p_.supply[graph_.first + i];
    sync();
    transport_.reset(n_, m_, w_.supply, p_.demand + i64(k_) * P,
                     {w_.row_arrays, w_.regret, w_.order, w_.new_cross});
    build_linear_cost();
    if (alpha_ > 0) first_start();
    descend(result);
    keep();
    split_costs(result);
    PairWriter<P>(p_, graph_, b_, k_, alpha_, best(), w_).write(result);
  }

 private:
  enum class Kind { product, given, vertex };

  TFGW_DEVICE double h(int i) const { return p_.h[graph_.first + i]; }
  TFGW_DEVICE double t_h(int l) const { return l < m_ ? p_.t_h[i64(k_) * P + l] : 0.0; }
  TFGW_DEVICE int live(int l) const { return p_.live[i64(k_) * P + l]; }
  TFGW_DEVICE const double* node_features(int i) const { return p_.x + i64(graph_.first + i) * p_.features; }

  template <class Visit>
  TFGW_DEVICE void each_entry(Visit visit) const {  // visit(entry, row, column)
#pragma unroll 2
    for (int e = lane(); e < n_ * P; e += 32) visit(e, e / P, e % P);
  }

  // (1−α) M. At α = 1 features play no role and may be anything finite.
  TFGW_DEVICE void build_linear_cost() {
    if (p_.cost) {
#pragma unroll 1
      for (int e = lane(); e < n_ * P; e += 32) {
        const int i = e / P, k = e % P;
        w_.linear[e] = k < m_ ? p_.cost[(i64(graph_.first + i) * p_.templates + k_) * p_.columns + live(k)] : kPadCost;
      }
    } else {
      squared_distances();
    }
    sync();
  }

  TFGW_DEVICE void squared_distances() {
    constexpr int kRows = 4, kTogether = Shape<P>::kRowsAtOnce;  // rows that share what is read of the template
    const int d = alpha_ < 1 ? int(p_.features) : 0;
    for (int k = lane() % P; k < P; k += 32) {
      const double* const there = p_.ft + i64(k_) * p_.features * P + k;
      for (int first = P < 32 ? lane() / P : 0; first < n_; first += kRows * kTogether) {
        const double* x[kRows];
        double sum[kRows] = {};
#pragma unroll
        for (int s = 0; s < kRows; ++s) {
          const int i = first + s * kTogether;
          x[s] = node_features(i < n_ ? i : first);
        }
#pragma unroll 4
        for (int c = 0; c < d; ++c) {
          const double f = there[c * P];
#pragma unroll
          for (int s = 0; s < kRows; ++s) sum[s] += (x[s][c] - f) * (x[s][c] - f);
        }
#pragma unroll
        for (int s = 0; s < kRows; ++s) {
          const int i = first + s * kTogether;
          if (i < n_) w_.linear[i * P + k] = k < m_ ? (1 - alpha_) * sum[s] : kPadCost;
        }
      }
    }
  }

  // What the caller gives, or hh̄ᵀ, of which everything has a closed form: X(hh̄ᵀ) = ½ (Ch (C̄h̄)ᵀ + Cᵀh (C̄ᵀh̄)ᵀ).
  TFGW_DEVICE void first_start() {
    if (p_.start) {
      round_to_marginals();
      restart_ = true;
      return;
    }
    kind_ = Kind::product;
    double linear = 0, graph_mean = 0, template_mean = 0;
    each_entry([&](int e, int i, int k) {
      const int node = graph_.first + i;
      const i64 at = i64(k_) * P + k;
      w_.new_cross[e] = 0.5 * (p_.out_mean[node] * p_.t_mean_out[at] + p_.in_mean[node] * p_.t_mean_in[at]);
      if (k < m_) linear += h(i) * t_h(k) * w_.linear[e];
    });
    for (int i = lane(); i < n_; i += 32) graph_mean += h(i) * p_.out_mean[graph_.first + i];
    for (int k = lane(); k < m_; k += 32) template_mean += t_h(k) * p_.t_mean_out[i64(k_) * P + k];
    warp_sums(linear, graph_mean, template_mean);
    only_atom(linear, graph_mean * template_mean);
  }

  // `given` becomes the only atom.
  TFGW_DEVICE void start_from_given() {
    restart_ = false;
    kind_ = Kind::given;
    cross_.apply(w_.given, w_.new_cross);
    double linear = 0, square = 0;
    each_entry([&](int e, int, int k) {
      if (k < m_) linear += w_.given[e] * w_.linear[e], square += w_.given[e] * w_.new_cross[e];
    });
    warp_sums(linear, square);
    only_atom(linear, square);
  }

  // The atom in place 0, whose cross term is in `new_cross`, is the iterate.
  TFGW_DEVICE void only_atom(double linear, double square) {
    live_ = 1, base_place_ = 0;
    weight_ = lane() == 0;
    linear_ = lane() == 0 ? linear : 0.0;
    if (lane() == 0) w_.Q.at(0, 0) = square;
    keep_new_cross(0);
    sync();
  }

  // A coupling near the one that the caller gives, which may miss its marginals by rounding: rows and columns that are
  // too heavy shrink, and what is then missing is spread as a product.
  TFGW_DEVICE void round_to_marginals() {
    double* T = w_.given;
    double *row_left = w_.best_u, *col_left = w_.best_v;
    const double* start = p_.start + (i64(graph_.first) * p_.templates + k_) * p_.columns;
    const i64 stride = p_.templates * p_.columns;
#pragma unroll 1
    for (int i = lane(); i < n_; i += 32) {
      double sum = 0;
#pragma unroll 1
      for (int k = 0; k < m_; ++k) sum += T[i * P + k] = larger(0.0, start[i * stride + live(k)]);
      const double shrink = sum > h(i) ? h(i) / sum : 1.0;
#pragma unroll 1
      for (int k = 0; k < P; ++k) T[i * P + k] = k < m_ ? T[i * P + k] * shrink : 0.0;
    }
    sync();
#pragma unroll 1
    for (int k = lane(); k < m_; k += 32) {
      double sum = 0;
#pragma unroll 1
      for (int i = 0; i < n_; ++i) sum += T[i * P + k];
      const double shrink = sum > t_h(k) ? t_h(k) / sum : 1.0;
#pragma unroll 1
      for (int i = 0; i < n_; ++i) T[i * P + k] *= shrink;
      col_left[k] = larger(0.0, t_h(k) - sum * shrink);
    }
    sync();
    double missing = 0;
#pragma unroll 1
    for (int i = lane(); i < n_; i += 32) {
      double sum = 0;
#pragma unroll 1
      for (int k = 0; k < m_; ++k) sum += T[i * P + k];
      missing += row_left[i] = larger(0.0, h(i) - sum);
    }
    missing = warp_sum(missing);
    sync();
    each_entry([&](int e, int i, int k) {
      if (k < m_ && missing > 0) T[e] += row_left[i] * col_left[k] / missing;
    });
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
      if (result.iterations == 0) newest_ = -1;  // the first basis is made in `new_cross`
      const Outcome outcome = transport_.solve(w_.gradient, lazy && !last ? kLazySweeps : 0);
      if (tie_break) rebuild_gradient();
      ++result.iterations;
      const int fresh = lowest_bit(~live_);
      take_vertex(fresh);
      double linear = weight_ * linear_, squared = weight_ * quadratic();  // shares of (1−α)⟨M, T⟩ and ⟨T, X(T)⟩
      double sloped = share_of_dot(fresh, w_.gradient), own_linear = share_of_dot(fresh, w_.linear);
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
        if (stationary && kind_ == Kind::vertex && same_plan(fresh)) return;
      }
      const double mixed = from_lane(add_atom(fresh, own_linear), fresh);  // ⟨fresh, X(T)⟩
      if (alpha_ <= 0) {  // one linear problem, whose solution is all
        weight_ = lane() == 0, result.gap = 0;
        return;
      }
      const double own = w_.Q.at(fresh, fresh);
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
    if (step < 1) {
      SimplexQp(w_.Q, linear_, alpha_, w_.qp).descend(weight_);
      weight_ /= warp_sum(weight_);
    }
    live_ = ballot(weight_ > 0);
    if (kind_ != Kind::vertex && !(live_ >> base_place_ & 1)) kind_ = Kind::vertex;
    if (live_ == ~0u) {  // out of room: the iterate itself becomes the only atom
      merge(w_.given);
      restart_ = true;
    }
  }

  // What is in `new_cross` belongs to atom s; it must outlive the next atom.
  TFGW_DEVICE void keep_new_cross(int s) {
    double* const to = w_.cross(s);
#pragma unroll 4
    for (int e = lane(); e < n_ * P; e += 32) to[e] = w_.new_cross[e];
    newest_ = s;
  }
  TFGW_DEVICE const double* cross(int s) const { return s == newest_ ? w_.new_cross : w_.cross(s); }

  TFGW_DEVICE void rebuild_gradient() {
    const double* from = w_.linear;
    u32 left = live_;
    do {  // once at least: without atoms, the gradient is the linear cost
      const int s = left ? lowest_bit(left) : 0;
      const double factor = left ? -4 * alpha_ * from_lane(weight_, s) : 0.0;
      const double* X = left ? cross(s) : w_.linear;
#pragma unroll 4
      for (int e = lane(); e < n_ * P; e += 32) w_.gradient[e] = from[e] + factor * X[e];
      from = w_.gradient;
      left &= left - 1;
    } while (left);
    sync();
  }

  // Ties of the first linear problem are broken by how alike the surroundings of two nodes are:
  // S₀ = (1−α) F F̄ᵀ + α, Sₜ₊₁ ∝ X(Sₜ).
  TFGW_DEVICE void break_ties() {
    double largest = 0;
    double *now = w_.new_cross, *next = graph_.symmetric ? now : w_.given;  // two halves need `now` twice
    newest_ = -1;
    each_entry([&](int e, int i, int k) {
      if (k < m_) largest = larger(largest, magnitude(w_.gradient[e]));
      const double norms = p_.x_norm[graph_.first + i] + p_.t_norm[i64(k_) * P + k];
      now[e] = k < m_ ? 0.5 * ((1 - alpha_) * norms - w_.linear[e]) + alpha_ : 0.0;
      w_.spare[e] = 0;
    });
    largest = warp_max(largest);
    sync();
    for (int hop = 0; hop < kTieHops; ++hop) {
      cross_.apply(now, next);
      double peak = 0;
      each_entry([&](int e, int, int k) {
        if (k < m_) peak = larger(peak, magnitude(next[e]));
      });
      peak = warp_max(peak);
      if (peak == 0) break;
      const double scale = 1 / peak;
      each_entry([&](int e, int, int) { w_.spare[e] += next[e] *= scale; });
      sync();
      double* const before = now;
      now = next, next = before;
    }
    rebuild_gradient();
    each_entry([&](int e, int, int) { w_.gradient[e] -= kTieShare * largest * w_.spare[e]; });
    sync();
  }

  // The flow that the simplex found, as the plan of atom `s`.
  TFGW_DEVICE void take_vertex(int s) {
    Entry* const to = w_.plan(s);
    const int count = transport_.tree().for_each_arc([&](int e, int row, int col, i64 flow) {
      to[e] = w_.new_plan[e] = {double(flow) * kMassUnit, row, col};
    });
    if (lane() == s) count_ = count;
    newest_plan_ = s;
    sync();
  }

  TFGW_DEVICE VertexPlan plan(int s) const {
    return {from_lane(count_, s), s == newest_plan_ ? w_.new_plan : w_.plan(s), transport_.tree().row_begin()};
  }

  // This lane's share of ⟨plan of atom s, matrix⟩.
  TFGW_DEVICE double share_of_dot(int s, const double* matrix) const {
    const VertexPlan at = plan(s);
    double sum = 0;
#pragma unroll 1
    for (int e = lane(); e < at.count; e += 32) {
      const Entry a = at.entries[e];
      sum += a.weight * matrix[a.row * P + a.col];
    }
    return sum;
  }

  // Whether the iterate is one vertex, and that of atom s.
  TFGW_DEVICE bool same_plan(int s) const {
    if (live_ & (live_ - 1)) return false;
    const VertexPlan now = plan(lowest_bit(live_)), other = plan(s);
    bool differs = now.count != other.count;
#pragma unroll 1
    for (int e = lane(); e < now.count && !differs; e += 32) {
      const Entry a = now.entries[e], b = other.entries[e];
      differs = a.row != b.row || a.col != b.col || a.weight != b.weight;
    }
    return ballot(differs) == 0;
  }

  // Returns ⟨atom, X(T)⟩ for each lane's atom.
  TFGW_DEVICE double add_atom(int fresh, double linear) {
    if (lane() == fresh) linear_ = linear, weight_ = 0;
    live_ |= u32(1) << fresh;
    if (!has_structure(p_)) return 0;
    cross_.apply(plan(fresh), w_.new_cross);
    keep_new_cross(fresh);
#pragma unroll 1
    for (u32 left = live_; left;) {  // two at a time
      const int s = lowest_bit(left);
      left &= left - 1;
      const int t = left ? lowest_bit(left) : s;
      left &= left - 1;
      double q_s = share_of_dot(fresh, cross(s)), q_t = share_of_dot(fresh, cross(t));
      warp_sums(q_s, q_t);
      if (lane() == 0) {
        w_.Q.at(s, fresh) = w_.Q.at(fresh, s) = q_s;
        w_.Q.at(t, fresh) = w_.Q.at(fresh, t) = q_t;
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
      if (live_ >> lane() & 1) q += w_.Q.at(lane(), t) * w;
    }
    return q;
  }

  // The iterate T as an (n, P) matrix.
  TFGW_DEVICE void merge(double* out) {
    const double base = kind_ == Kind::vertex ? 0.0 : from_lane(weight_, base_place_);
    each_entry([&](int e, int i, int k) {
      const double entry = kind_ == Kind::given ? w_.given[e] : kind_ == Kind::product ? h(i) * t_h(k) : 0.0;
      out[e] = base * entry;
    });
    sync();
    for (u32 left = live_; left; left &= left - 1) {
      const int s = lowest_bit(left);
      if (kind_ != Kind::vertex && s == base_place_) continue;
      const VertexPlan at = plan(s);
      const double w = from_lane(weight_, s);
#pragma unroll 1
      for (int e = lane(); e < at.count; e += 32) {
        const Entry a = at.entries[e];
        out[a.row * P + a.col] += w * a.weight;
      }
      sync();
    }
  }

  TFGW_DEVICE double* best() const { return w_.gradient; }  // which is not needed any more

  TFGW_DEVICE void keep() {
    merge(best());
    for (int i = lane(); i < n_; i += 32) w_.best_u[i] = transport_.tree().row_potential(i);
    for (int k = lane(); k < m_; k += 32) w_.best_v[k] = transport_.tree().col_potential(k);
    sync();
  }

  // Both terms at the plan that was kept, whatever α: it may be learned, and its gradient is their difference.
  TFGW_DEVICE void split_costs(PairResult& result) {
    if (alpha_ < 1) {
      result.feature_cost = warp_sum(weight_ * linear_) / (1 - alpha_);
    } else {
      double sum = 0;
      each_entry([&](int e, int i, int k) {
        if (k < m_ && best()[e] > 0) sum += best()[e] * squared_distance(p_, graph_.first + i, k_, live(k));
      });
      result.feature_cost = warp_sum(sum);
    }
    if (has_structure(p_)) {
      const double squared = warp_sum(weight_ * quadratic());
      result.structure_cost = larger(0.0, p_.constant[b_] + p_.t_constant[k_] - 2 * squared);
    }
    result.distance = alpha_ * result.structure_cost + (1 - alpha_) * result.feature_cost;
  }

  const Problem& p_;
  const int b_, k_;
  const GraphView graph_;
  const int n_, m_;
  const double alpha_;
  Workspace<P> w_;
  Transport<Tree> transport_;
  CrossOperator<P> cross_;
  u32 live_ = 0;                       // places in use
  Kind kind_ = Kind::vertex;           // what sits in base_place_, unless a vertex
  int base_place_ = 0;
  bool restart_ = false;               // from what is in `given`
  int newest_ = -1, newest_plan_ = -1; // whose cross term and plan are in `new_cross` and `new_plan`
  double weight_ = 0, linear_ = 0;     // of this lane's atom: weight, and (1−α)⟨M, plan⟩
  int count_ = 0;                      // and the entries of its plan
};

// Shared memory of a solve: of whichever basis fits the graph.
template <int P>
union SolveMemory {
  typename CoreTree<P>::Memory core;
  typename FlatTree<(P < 32 ? P : 32), 2>::Memory small;
  typename FlatTree<(P < 32 ? P : 32), 4>::Memory medium;
};

template <int P>
TFGW_DEVICE void solve_pair(const Problem& p, SolveMemory<P>& memory, const Arena& arena, int b, int k) {
  const int n = p.ptr[b + 1] - p.ptr[b];
  if (n == 0) return write_empty(p, i64(b) * p.templates + k);
  if constexpr (P <= 32) {
    if (n <= FlatTree<P, 2>::kMaxRows) return FgwSolver<FlatTree<P, 2>>(p, memory.small, arena, b, k).solve();
    if (n <= FlatTree<P, 4>::kMaxRows) return FgwSolver<FlatTree<P, 4>>(p, memory.medium, arena, b, k).solve();
  }
  FgwSolver<CoreTree<P>>(p, memory.core, arena, b, k).solve();
}

}  // namespace tfgw

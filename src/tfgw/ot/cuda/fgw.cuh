// Third kernel: Fused Gromov-Wasserstein of one pair by one warp, the counterpart of cpp/fgw.cpp, which explains it.
// Vertices ("atoms") sit in 32 places; lane s holds the weight and the linear cost of the atom in place s.
#pragma once

#include "cross.cuh"
#include "simplex_qp.cuh"
#include "transport.cuh"
#include "workspace.cuh"

namespace tfgw {

constexpr int kLazySweeps = 2;
constexpr int kTieHops = 3;
constexpr double kTieShare = 1e-6;
constexpr double kRounding = 1e-14;

enum class Status { converged = 0, max_iter = 1, empty = 2 };

struct PairResult {
  double distance = 0, structure_cost = 0, feature_cost = 0, gap = 0;
  int iterations = 0;
  Status status = Status::converged;
};

// A graph without nodes, at the end of a batch.
TFGW_DEVICE void write_empty(const Problem& p, i64 pair) {
  if (lane() == 0) {
    p.distance[pair] = p.structure_cost[pair] = p.feature_cost[pair] = p.gap[pair] = 0;
    p.iterations[pair] = 0, p.status[pair] = int(Status::empty);
  }
  for (i64 l = lane(); l < p.columns && p.plan; l += 32) p.col_potential[pair * p.columns + l] = 0;
}

template <int P>
class FgwSolver {
  using S = Shape<P>;

 public:
  TFGW_DEVICE FgwSolver(const Problem& p, TreeMemory<P>& memory, Workspace<P>& work, int b, int k)
      : p_(p), w_(work), b_(b), k_(k), graph_(graph_view(p, b)), n_(graph_.n), m_(p.live_count[k]),
        alpha_(has_structure(p) ? p.alpha[k] : 0.0), transport_(memory),
        cross_(p, graph_, k, m_, work.scratch, work.half) {}

  TFGW_DEVICE void solve() {
    PairResult result;
    transport_.reset(n_, m_, p_.supply + graph_.first, p_.demand + i64(k_) * P,
                     {w_.u, w_.base, w_.regret, w_.anchor, w_.order, w_.scratch});
    build_linear_cost();
    if (alpha_ > 0) first_start();
    descend(result);
    keep();
    split_costs(result);
    write(result);
  }

 private:
  enum class Kind { product, given, vertex };

  TFGW_DEVICE double h(int i) const { return p_.h[graph_.first + i]; }
  TFGW_DEVICE double t_h(int l) const { return l < m_ ? p_.t_h[i64(k_) * P + l] : 0.0; }
  TFGW_DEVICE int live(int l) const { return p_.live[i64(k_) * P + l]; }
  TFGW_DEVICE const double* node_features(int i) const { return p_.x + i64(graph_.first + i) * p_.features; }

  template <class Visit>
  TFGW_DEVICE void each_entry(Visit visit) const {  // visit(entry, row, column)
    for (int e = lane(); e < n_ * P; e += 32) visit(e, e / P, e % P);
  }

  // (1−α) M. At α = 1 features play no role and may be anything finite.
  TFGW_DEVICE void build_linear_cost() {
    const double* ft = p_.ft + i64(k_) * p_.features * P;
    each_entry([&](int e, int i, int k) {
      double cost = 0;
      if (p_.cost && k < m_) cost = p_.cost[(i64(graph_.first + i) * p_.templates + k_) * p_.columns + live(k)];
      if (!p_.cost && alpha_ < 1) {
        const double* x = node_features(i);
#pragma unroll 4
        for (int c = 0; c < int(p_.features); ++c) {
          const double diff = x[c] - ft[c * P + k];
          cost += diff * diff;
        }
        cost *= 1 - alpha_;
      }
      w_.linear[e] = k < m_ ? cost : kPadCost;
    });
    sync();
  }

  // α = 0: one linear problem, whose solution is all.
  TFGW_DEVICE void end_linear(PairResult& result) {
    result.iterations = 1;
    live_ = 0, kind_ = Kind::vertex;
    take_vertex(0);
    if (has_structure(p_)) add_atom(0);
    live_ = 1;
    weight_ = lane() == 0;
    linear_ = from_lane_or_zero(0, dot(0, w_.linear));
  }

  // hh̄ᵀ, of which everything has a closed form: X(hh̄ᵀ) = ½ (Ch (C̄h̄)ᵀ + Cᵀh (C̄ᵀh̄)ᵀ). Or what the caller gives.
  TFGW_DEVICE void first_start() {
    live_ = 1;
    weight_ = lane() == 0;
    double* cross = w_.cross(0);
    double linear = 0, square = 0;
    if (p_.start) {
      kind_ = Kind::given;
      round_to_marginals();
      cross_.apply(w_.given, cross);
      each_entry([&](int e, int, int k) {
        if (k < m_) linear += w_.given[e] * w_.linear[e], square += w_.given[e] * cross[e];
      });
      square = warp_sum(square);
    } else {
      kind_ = Kind::product;
      each_entry([&](int e, int i, int k) {
        const int node = graph_.first + i;
        const i64 at = i64(k_) * P + k;
        cross[e] = 0.5 * (p_.out_mean[node] * p_.t_mean_out[at] + p_.in_mean[node] * p_.t_mean_in[at]);
        if (k < m_) linear += h(i) * t_h(k) * w_.linear[e];
      });
      double graph_mean = 0, template_mean = 0;
      for (int i = lane(); i < n_; i += 32) graph_mean += h(i) * p_.out_mean[graph_.first + i];
      for (int k = lane(); k < m_; k += 32) template_mean += t_h(k) * p_.t_mean_out[i64(k_) * P + k];
      square = warp_sum(graph_mean) * warp_sum(template_mean);
    }
    linear_ = from_lane_or_zero(0, warp_sum(linear));
    if (lane() == 0) w_.Q[0] = square;
    sync();
  }

  // A coupling near the one that the caller gives, which may miss its marginals by rounding: rows and columns that are
  // too heavy shrink, and what is then missing is spread as a product.
  TFGW_DEVICE void round_to_marginals() {
    double* T = w_.given;
    double *row_left = w_.u, *col_left = w_.base;
    const double* start = p_.start + (i64(graph_.first) * p_.templates + k_) * p_.columns;
    const i64 stride = p_.templates * p_.columns;
    for (int i = lane(); i < n_; i += 32) {
      double sum = 0;
      for (int k = 0; k < m_; ++k) sum += T[i * P + k] = larger(0.0, start[i * stride + live(k)]);
      const double shrink = sum > h(i) ? h(i) / sum : 1.0;
      for (int k = 0; k < P; ++k) T[i * P + k] = k < m_ ? T[i * P + k] * shrink : 0.0;
    }
    sync();
    for (int k = lane(); k < m_; k += 32) {
      double sum = 0;
      for (int i = 0; i < n_; ++i) sum += T[i * P + k];
      const double shrink = sum > t_h(k) ? t_h(k) / sum : 1.0;
      for (int i = 0; i < n_; ++i) T[i * P + k] *= shrink;
      col_left[k] = larger(0.0, t_h(k) - sum * shrink);
    }
    sync();
    double missing = 0;
    for (int i = lane(); i < n_; i += 32) {
      double sum = 0;
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
      rebuild_gradient();
      const bool tie_break = alpha_ > 0 && result.iterations == 0 && !p_.start;
      const bool last = result.iterations + 1 >= p_.max_iter;
      const double* cost = w_.gradient;
      if (tie_break) cost = tie_broken_gradient();
      const Outcome outcome = transport_.solve(cost, lazy && !last ? kLazySweeps : 0);
      if (alpha_ <= 0) return end_linear(result);
      ++result.iterations;

      const double linear = warp_sum(weight_ * linear_);     // (1−α)⟨M, T⟩
      const double quadratic = quadratic_of(lane());         // ⟨atom, X(T)⟩
      const double squared = warp_sum(weight_ * quadratic);  // ⟨T, X(T)⟩
      const double value = structure_scale + linear - 2 * alpha_ * squared;
      const double scale = structure_scale + magnitude(linear);
      const int fresh = lowest_bit(u64(~live_));
      take_vertex(fresh);
      result.distance = value;
      result.gap = larger(0.0, linear - 4 * alpha_ * squared - dot(fresh, w_.gradient));

      const double tolerance = p_.tol * magnitude(value) + kRounding * scale;
      const bool flat = result.gap <= tolerance;
      lazy = !flat;  // while there is a way down, any vertex that leads there will do
      if (flat && outcome == Outcome::improved) continue;
      const bool stationary = flat && !tie_break;
      if (last) {
        result.status = stationary ? Status::converged : Status::max_iter;
        return;
      }
      if (stationary && kind_ == Kind::vertex && same_plan(fresh)) return;
      add_atom(fresh);
      const double own = w_.Q[fresh * kMaxAtoms + fresh];
      const double curvature = -2 * alpha_ * (own - 2 * from_lane(quadratic_of(lane()), fresh) + squared);
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
      SimplexQp(w_.Q, linear_, alpha_, *w_.qp).descend(weight_);
      weight_ /= warp_sum(weight_);
    }
    live_ = ballot(weight_ > 0);
    if (kind_ != Kind::vertex && !(live_ >> base_place_ & 1)) kind_ = Kind::vertex;
    if (live_ == ~0u) collapse();
  }

  // Out of room: the iterate itself becomes the only atom.
  TFGW_DEVICE void collapse() {
    merge(w_.given);
    sync();
    kind_ = Kind::given, base_place_ = 0;
    double linear = 0, square = 0;
    cross_.apply(w_.given, w_.cross(0));
    each_entry([&](int e, int, int k) {
      if (k < m_) linear += w_.given[e] * w_.linear[e], square += w_.given[e] * w_.cross(0)[e];
    });
    square = warp_sum(square);
    live_ = 1;
    weight_ = lane() == 0;
    linear_ = from_lane_or_zero(0, warp_sum(linear));
    if (lane() == 0) w_.Q[0] = square;
    sync();
  }

  TFGW_DEVICE void rebuild_gradient() {
    for (int e = lane(); e < n_ * P; e += 32) w_.gradient[e] = w_.linear[e];
    for (u32 left = live_; left; left &= left - 1) {
      const int s = lowest_bit(left);
      const double factor = -4 * alpha_ * from_lane(weight_, s);
      const double* cross = w_.cross(s);
#pragma unroll 4
      for (int e = lane(); e < n_ * P; e += 32) w_.gradient[e] += factor * cross[e];
    }
    sync();
  }

  // Ties of the first linear problem are broken by how alike the surroundings of two nodes are:
  // S₀ = (1−α) F F̄ᵀ + α, Sₜ₊₁ ∝ X(Sₜ).
  TFGW_DEVICE const double* tie_broken_gradient() {
    double largest = 0;
    each_entry([&](int e, int i, int k) {
      w_.tie_broken[e] = w_.gradient[e];
      if (k >= m_) {
        w_.similarity[e] = 0;
        return;
      }
      largest = larger(largest, magnitude(w_.gradient[e]));
      const double norms = p_.x_norm[graph_.first + i] + p_.t_norm[i64(k_) * P + k];
      w_.similarity[e] = 0.5 * ((1 - alpha_) * norms - w_.linear[e]) + alpha_;
    });
    largest = warp_max(largest);
    sync();
    double *now = w_.similarity, *next = w_.given;
    for (int hop = 0; hop < kTieHops; ++hop) {
      cross_.apply(now, next);
      double peak = 0;
      each_entry([&](int e, int, int k) {
        if (k < m_) peak = larger(peak, magnitude(next[e]));
      });
      peak = warp_max(peak);
      if (peak == 0) break;
      each_entry([&](int e, int, int) {
        next[e] /= peak;
        w_.tie_broken[e] -= kTieShare * largest * next[e];
      });
      sync();
      double* const before = now;
      now = next, next = before;
    }
    return w_.tie_broken;
  }

  // The flow that the simplex found, as the plan of atom `s`.
  TFGW_DEVICE void take_vertex(int s) {
    const VertexPlan to = w_.plan(s);
    sync();
    const ArcCount count = transport_.tree().for_each_arc([&](int e, int row, int col, i64 flow) {
      to.row[e] = row, to.col[e] = col, to.mass[e] = double(flow) * kMassUnit;
    });
    if (lane() == s) count_ = count;
    sync();
  }

  TFGW_DEVICE VertexPlan plan(int s) const {
    VertexPlan at = w_.plan(s);
    at.count = {from_lane(count_.leaves, s), from_lane(count_.all, s)};
    return at;
  }

  // ⟨plan of atom s, matrix⟩
  TFGW_DEVICE double dot(int s, const double* matrix) const {
    const VertexPlan at = plan(s);
    double sum = 0;
    for (int e = lane(); e < at.count.all; e += 32) sum += at.mass[e] * matrix[i64(at.row[e]) * P + at.col[e]];
    return warp_sum(sum);
  }

  // Whether the iterate is one vertex, and that of atom s.
  TFGW_DEVICE bool same_plan(int s) const {
    if (live_ & (live_ - 1)) return false;
    const VertexPlan now = plan(lowest_bit(live_)), other = plan(s);
    bool differs = now.count.leaves != other.count.leaves || now.count.all != other.count.all;
    for (int e = lane(); e < now.count.all && !differs; e += 32)
      differs = now.row[e] != other.row[e] || now.col[e] != other.col[e] || now.mass[e] != other.mass[e];
    return ballot(differs) == 0;
  }

  TFGW_DEVICE double from_lane_or_zero(int s, double v) const { return lane() == s ? v : 0.0; }

  TFGW_DEVICE void add_atom(int fresh) {
    cross_.apply(plan(fresh), w_.cross(fresh));
    const double linear = dot(fresh, w_.linear);
    if (lane() == fresh) linear_ = linear, weight_ = 0;
    live_ |= u32(1) << fresh;
    for (u32 left = live_; left; left &= left - 1) {
      const int s = lowest_bit(left);
      const double q = dot(fresh, w_.cross(s));
      if (lane() == 0) w_.Q[s * kMaxAtoms + fresh] = w_.Q[fresh * kMaxAtoms + s] = q;
    }
    sync();
  }

  // Σ_t Q_st w_t
  TFGW_DEVICE double quadratic_of(int s) const {
    double q = 0;
    for (u32 left = live_; left; left &= left - 1) {
      const int t = lowest_bit(left);
      const double w = from_lane(weight_, t);
      if (live_ >> s & 1) q += w_.Q[s * kMaxAtoms + t] * w;
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
      for (int e = lane(); e < at.count.all; e += 32) out[i64(at.row[e]) * P + at.col[e]] += w * at.mass[e];
      sync();
    }
  }

  TFGW_DEVICE void keep() {
    merge(w_.best);
    for (int i = lane(); i < n_; i += 32) w_.best_u[i] = transport_.row_potential(i);
    for (int k = lane(); k < m_; k += 32) w_.best_v[k] = transport_.col_potential(k);
    sync();
  }

  // Both terms at the plan that was kept, whatever α: it may be learned, and its gradient is their difference.
  TFGW_DEVICE void split_costs(PairResult& result) {
    if (alpha_ < 1) {
      result.feature_cost = warp_sum(weight_ * linear_) / (1 - alpha_);
    } else {
      double sum = 0;
      each_entry([&](int e, int i, int k) {
        if (k < m_ && w_.best[e] > 0) sum += w_.best[e] * squared_distance(i, live(k));
      });
      result.feature_cost = warp_sum(sum);
    }
    if (has_structure(p_)) {
      const double squared = warp_sum(weight_ * quadratic_of(lane()));
      result.structure_cost = larger(0.0, p_.constant[b_] + p_.t_constant[k_] - 2 * squared);
    }
    result.distance = alpha_ * result.structure_cost + (1 - alpha_) * result.feature_cost;
  }

  TFGW_DEVICE double squared_distance(int i, int template_node) const {
    const double* x = node_features(i);
    const double* f = p_.template_x + (i64(k_) * p_.columns + template_node) * p_.features;
    double s = 0;
    for (i64 c = 0; c < p_.features; ++c) s += (x[c] - f[c]) * (x[c] - f[c]);
    return s;
  }

  TFGW_DEVICE void write(const PairResult& result) {
    const i64 pair = i64(b_) * p_.templates + k_;
    if (lane() == 0) {
      p_.distance[pair] = result.distance, p_.gap[pair] = result.gap;
      p_.structure_cost[pair] = result.structure_cost, p_.feature_cost[pair] = result.feature_cost;
      p_.iterations[pair] = result.iterations, p_.status[pair] = int(result.status);
    }
    if (!p_.plan) return;
    const i64 first = i64(graph_.first) * p_.templates + k_;
    const int columns = int(p_.columns);
    for (int e = lane(); e < n_ * columns; e += 32)
      p_.plan[(first + e / columns * p_.templates) * columns + e % columns] = 0;
    sync();
    each_entry([&](int e, int i, int k) {
      if (k < m_) p_.plan[(first + i * p_.templates) * columns + live(k)] = w_.best[e];
    });
    write_potentials(first, pair);
  }

  // The solver left out the terms α Σ_j (C_ij² + C_ji²) h_j and their counterpart; the potentials take them back.
  TFGW_DEVICE void write_potentials(i64 first, i64 pair) {
    const int columns = int(p_.columns);
    const auto square = [&](int node) { return alpha_ > 0 ? alpha_ * p_.t_square[i64(k_) * columns + node] : 0.0; };
    double mean = 0;
    for (int l = lane(); l < m_; l += 32) mean += (w_.best_v[l] + square(live(l))) / m_;
    mean = warp_sum(mean);
    for (int i = lane(); i < n_; i += 32)
      p_.row_potential[first + i * p_.templates] =
          w_.best_u[i] + (alpha_ > 0 ? alpha_ * p_.square[graph_.first + i] : 0.0) + mean;
    for (int l = lane(); l < m_; l += 32)
      p_.col_potential[pair * columns + live(l)] = w_.best_v[l] + square(live(l)) - mean;
    for (int node = 0; node < columns && m_ < columns; ++node) {
      if (p_.template_weights[i64(k_) * columns + node] > 0) continue;
      const double reduced = dead_potential(node);
      if (lane() == 0) p_.col_potential[pair * columns + node] = reduced + square(node) - mean;
    }
  }

  // The potential of a weightless template node: the cheapest way to give it its first mass, min_i (G_ik − u_i).
  TFGW_DEVICE double dead_potential(int node) {
    double *forth = w_.u, *back = w_.base;  // T C̄[node, :]ᵀ and T C̄[:, node]
    const int columns = int(p_.columns);
    if (alpha_ > 0) {
      const double* C = p_.template_structure + i64(k_) * columns * columns;
      for (int i = lane(); i < n_; i += 32) {
        double f = 0, g = 0;
        for (int l = 0; l < m_; ++l) {
          const double mass = w_.best[i64(i) * P + l];
          f += mass * C[node * columns + live(l)], g += mass * C[live(l) * columns + node];
        }
        forth[i] = f, back[i] = g;
      }
      sync();
    }
    double least = kPadCost;
    for (int i = lane(); i < n_; i += 32) {
      double linear = 0;
      if (p_.cost) {
        linear = p_.cost[(i64(graph_.first + i) * p_.templates + k_) * columns + node];
      } else if (alpha_ < 1) {
        linear = (1 - alpha_) * squared_distance(i, node);
      }
      const double cross = alpha_ > 0 ? 0.5 * (row_times(i, false, forth) + row_times(i, true, back)) : 0.0;
      least = smaller(least, linear - 4 * alpha_ * cross - w_.best_u[i]);
    }
    sync();
    return -warp_max(-least);
  }

  // (C y)_i, or (Cᵀ y)_i
  TFGW_DEVICE double row_times(int i, bool transposed, const double* y) const {
    double sum = 0;
    if (graph_.sparse) {
      const int node = graph_.first + i, first = transposed ? p_.t_start[node] : p_.row_start[node];
      const int count = transposed ? p_.t_length[node] : p_.row_length[node];
      for (int e = first; e < first + count; ++e)
        sum += transposed ? p_.t_value[e] * y[p_.t_column[e]] : p_.value[e] * y[p_.column[e]];
    } else {
      for (int j = 0; j < n_; ++j) sum += graph_.dense[transposed ? i64(j) * n_ + i : i64(i) * n_ + j] * y[j];
    }
    return sum;
  }

  const Problem& p_;
  Workspace<P>& w_;
  const int b_, k_;
  const GraphView graph_;
  const int n_, m_;
  const double alpha_;
  Transport<P> transport_;
  CrossOperator<P> cross_;
  u32 live_ = 0;                       // places in use
  Kind kind_ = Kind::vertex;           // what sits in base_place_, unless a vertex
  int base_place_ = 0;
  double weight_ = 0, linear_ = 0;     // of this lane's atom: weight, and (1−α)⟨M, plan⟩
  ArcCount count_{};                   // and the entries of its plan
};

}  // namespace tfgw

// Results of a solve: costs, plan and potentials of one pair, in the order of the caller's template nodes.
#pragma once

#include "workspace.cuh"

namespace tfgw {

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

// ‖x_node − x̄‖², x̄ that of a node of template k in the caller's order.
TFGW_DEVICE double squared_distance(const Problem& p, i64 node, int k, int template_node) {
  const double* x = p.x + node * p.features;
  const double* f = p.template_x + (i64(k) * p.columns + template_node) * p.features;
  double s = 0;
#pragma unroll 1
  for (i64 c = 0; c < p.features; ++c) s += (x[c] - f[c]) * (x[c] - f[c]);
  return s;
}

struct Potentials {
  double *rows, *cols;
};

template <int P, class Team>
class PairWriter {
 public:
  TFGW_DEVICE PairWriter(const Problem& p, const GraphView& graph, int b, int k, double alpha,
                         const Potentials& potentials)
      : p_(p), graph_(graph), b_(b), k_(k), n_(graph.n), m_(p.live_count[k]), alpha_(alpha), potentials_(potentials) {}

  // Run by all warps: the plan, an (n, P) matrix.
  TFGW_DEVICE void write_plan(const double* plan) {
    const i64 first = i64(graph_.first) * p_.templates + k_;
    const int columns = int(p_.columns);
    if (m_ < columns) {  // one thread per row, so that no zero overwrites the mass written by another thread
      for (int i = Team::thread(); i < n_; i += Team::kThreads) {
        double* const row = p_.plan + (first + i * p_.templates) * columns;
        for (int k = 0; k < columns; ++k) row[k] = 0;
        for (int k = 0; k < m_; ++k) row[live(k)] = plan[i * P + k];
      }
      return;
    }
    const int node = live(Team::thread() % P < m_ ? Team::thread() % P : 0);
#pragma unroll 2
    for (int e = Team::thread(); e < n_ * P; e += Team::kThreads) {
      const int k = P <= 32 ? node : live(e % P < m_ ? e % P : 0);
      if (e % P < m_) p_.plan[(first + e / P * p_.templates) * columns + k] = plan[e];
    }
  }

  // Run by one warp: everything else. `scratch` has two doubles per row.
  TFGW_DEVICE void write(const PairResult& result, const double* plan, double* scratch) {
    const i64 pair = i64(b_) * p_.templates + k_;
    if (lane() == 0) {
      p_.distance[pair] = result.distance, p_.gap[pair] = result.gap;
      p_.structure_cost[pair] = result.structure_cost, p_.feature_cost[pair] = result.feature_cost;
      p_.iterations[pair] = result.iterations, p_.status[pair] = int(result.status);
    }
    if (p_.plan) write_potentials(i64(graph_.first) * p_.templates + k_, pair, plan, scratch);
  }

 private:
  TFGW_DEVICE int live(int l) const { return p_.live[i64(k_) * P + l]; }

  // The solver omitted the terms α Σ_j (C_ij² + C_ji²) h_j and their counterpart; the potentials include them.
  TFGW_DEVICE void write_potentials(i64 first, i64 pair, const double* plan, double* scratch) {
    const int columns = int(p_.columns);
    const auto square = [&](int node) { return alpha_ > 0 ? alpha_ * p_.t_square[i64(k_) * columns + node] : 0.0; };
    double mean = 0;
#pragma unroll 1
    for (int l = lane(); l < m_; l += 32) mean += (potentials_.cols[l] + square(live(l))) / m_;
    mean = warp_sum(mean);
#pragma unroll 1
    for (int i = lane(); i < n_; i += 32)
      p_.row_potential[first + i * p_.templates] =
          potentials_.rows[i] + (alpha_ > 0 ? alpha_ * p_.square[graph_.first + i] : 0.0) + mean;
#pragma unroll 1
    for (int l = lane(); l < m_; l += 32)
      p_.col_potential[pair * columns + live(l)] = potentials_.cols[l] + square(live(l)) - mean;
#pragma unroll 1
    for (int node = 0; node < columns && m_ < columns; ++node) {
      if (p_.template_weights[i64(k_) * columns + node] > 0) continue;
      const double reduced = dead_potential(node, plan, scratch, scratch + n_);
      if (lane() == 0) p_.col_potential[pair * columns + node] = reduced + square(node) - mean;
    }
  }

  // The potential of a weightless template node: the cheapest way to give it its first mass, min_i (G_ik − u_i).
  // `forth` and `back` get T C̄[node, :]ᵀ and T C̄[:, node].
  TFGW_DEVICE double dead_potential(int node, const double* plan, double* forth, double* back) {
    const int columns = int(p_.columns);
    if (alpha_ > 0) {
      const double* C = p_.template_structure + i64(k_) * columns * columns;
#pragma unroll 1
      for (int i = lane(); i < n_; i += 32) {
        double f = 0, g = 0;
#pragma unroll 1
        for (int l = 0; l < m_; ++l) {
          const double mass = plan[i * P + l];
          f += mass * C[node * columns + live(l)], g += mass * C[live(l) * columns + node];
        }
        forth[i] = f, back[i] = g;
      }
      sync_warp();
    }
    double least = kPadCost;
#pragma unroll 1
    for (int i = lane(); i < n_; i += 32) {
      double linear = 0;
      if (p_.cost) {
        linear = p_.cost[(i64(graph_.first + i) * p_.templates + k_) * columns + node];
      } else if (alpha_ < 1) {
        linear = (1 - alpha_) * squared_distance(p_, graph_.first + i, k_, node);
      }
      const double cross = alpha_ > 0 ? 0.5 * (row_times(i, false, forth) + row_times(i, true, back)) : 0.0;
      least = smaller(least, linear - 4 * alpha_ * cross - potentials_.rows[i]);
    }
    sync_warp();
    return -warp_max(-least);
  }

  // (C y)_i, or (Cᵀ y)_i
  TFGW_DEVICE double row_times(int i, bool transposed, const double* y) const {
    double sum = 0;
    transposed = transposed && !graph_.symmetric;  // else Cᵀ is not stored
    if (graph_.sparse) {
      const int node = graph_.first + i, first = transposed ? p_.t_start[node] : p_.row_start[node];
      const int count = transposed ? p_.t_length[node] : p_.row_length[node];
#pragma unroll 1
      for (int e = first; e < first + count; ++e)
        sum += transposed ? p_.t_value[e] * y[p_.t_column[e]] : p_.value[e] * y[p_.column[e]];
    } else {
#pragma unroll 1
      for (int j = 0; j < n_; ++j) sum += graph_.dense[transposed ? i64(j) * n_ + i : i64(i) * n_ + j] * y[j];
    }
    return sum;
  }

  const Problem& p_;
  const GraphView graph_;
  const int b_, k_, n_, m_;
  const double alpha_;
  const Potentials potentials_;
};

}  // namespace tfgw

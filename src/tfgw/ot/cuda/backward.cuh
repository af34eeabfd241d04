// Gradients by the envelope theorem (cpp/backward.cpp has the formulas), in three kernels: what belongs to the graphs,
// node by node; the templates' sums over a share of the nodes and graphs each; the sum of the shares, in order, so
// that the same input gives the same bits.
#pragma once

#include "problem.cuh"

namespace tfgw {

struct Gradients {  // every member has 8 bytes
  const double *grad, *structure_cost, *feature_cost, *plan, *row_potential, *col_potential;
  double *x, *weights, *edge_weight, *dense;                     // null where not asked for
  double *template_structure, *template_x, *template_weights, *alpha;
  double* structured;  // (nodes, templates, columns): C T
  double* shares;      // (shares, templates, size of a share)
  i64 share_count;
};

class Backward {
 public:
  TFGW_DEVICE Backward(const Problem& p, const Gradients& g)
      : p_(p), g_(g), K_(int(p.templates)), m_(int(p.columns)), d_(int(p.features)) {}

  // One warp per node.
  TFGW_DEVICE void node(int i) {
    const int b = p_.graph_of[i];
    if (g_.x) {
      double scale = 0;
      for (int k = 0; k < K_; ++k) scale += feature_scale(b, k);
      for (int c = lane(); c < d_; c += 32) {
        double sum = scale * p_.h[i] * p_.x[i64(i) * d_ + c];
        for (int k = 0; k < K_; ++k) {
          double moved = 0;
          for (int l = 0; l < m_; ++l) moved += T(i, k)[l] * p_.template_x[(i64(k) * m_ + l) * d_ + c];
          sum -= feature_scale(b, k) * moved;
        }
        g_.x[i64(i) * d_ + c] = sum;
      }
    }
    if (g_.weights) {
      double sum = 0;
      for (int k = lane(); k < K_; k += 32) sum += up(b, k) * (g_.row_potential[i64(i) * K_ + k] - mean_potential(b, k));
      sum = warp_sum(sum);
      if (lane() == 0) g_.weights[i] = sum;
    }
    if (g_.template_structure)
      for (int e = lane(); e < K_ * m_; e += 32) g_.structured[i64(i) * K_ * m_ + e] = structure_row_times(b, i, e);
  }

  // One thread per edge, or per entry of the dense structures.
  TFGW_DEVICE void edge(i64 e) {
    const i64 from = p_.edge_index[e], to = p_.edge_index[p_.edges + e];
    const int b = p_.graph_of[from], j = int(to - p_.ptr[b]);
    int at = p_.row_start[from];
    while (p_.column[at] != j) ++at;  // repeated edges share an entry
    g_.edge_weight[e] = structure_entry(b, from, to, p_.value[at]);
  }
  TFGW_DEVICE void dense_row(i64 i, int first_column, int step) {
    const int b = p_.graph_of[i], first = p_.ptr[b], n = p_.ptr[b + 1] - first;
    const i64 row = p_.dense_at[b] + (i - first) * n;
    for (int j = first_column; j < n; j += step)
      g_.dense[row + j] = structure_entry(b, i, first + j, p_.dense[row + j]);
  }

  // One block per share and template: sums over its nodes and graphs.
  TFGW_DEVICE void share(int index, int k) {
    const i64 nodes = (p_.nodes + g_.share_count - 1) / g_.share_count, first = index * nodes;
    const i64 last = first + nodes < p_.nodes ? first + nodes : p_.nodes;
    double* out = g_.shares + (i64(index) * K_ + k) * share_size();
    for (int e = thread_in_block(); e < m_ * m_ && g_.template_structure; e += threads_in_block()) {
      const int a = e / m_, c = e % m_;
      double sum = 0;
#pragma unroll 4
      for (i64 i = first; i < last; ++i)
        sum -= structure_scale(p_.graph_of[i], k) * T(i, k)[a] * g_.structured[(i * K_ + k) * m_ + c];
      out[e] = sum;
    }
    out += m_ * m_;
    for (int e = thread_in_block(); e < m_ * d_ && g_.template_x; e += threads_in_block()) {
      const int a = e / d_, c = e % d_;
      double sum = 0;
#pragma unroll 4
      for (i64 i = first; i < last; ++i) sum -= feature_scale(p_.graph_of[i], k) * T(i, k)[a] * p_.x[i * d_ + c];
      out[e] = sum;
    }
    out += m_ * d_;
    const i64 graphs = (p_.graphs + g_.share_count - 1) / g_.share_count;
    const i64 last_graph = (index + 1) * graphs < p_.graphs ? (index + 1) * graphs : p_.graphs;
    for (int e = thread_in_block(); e < m_ + 3; e += threads_in_block()) {
      double sum = 0;
      for (i64 b = index * graphs; b < last_graph; ++b) {
        if (p_.ptr[b] == p_.ptr[b + 1]) continue;
        const i64 pair = b * K_ + k;
        sum += e < m_ ? up(b, k) * g_.col_potential[pair * m_ + e]
               : e == m_ ? up(b, k) * (g_.structure_cost[pair] - g_.feature_cost[pair])
               : e == m_ + 1 ? feature_scale(b, k) : structure_scale(b, k);
      }
      out[e] = sum;
    }
  }

  // Some blocks per template: all shares, and the terms that do not depend on the graph.
  TFGW_DEVICE void total(int k, int part, int parts, double* shared) {
    const int mine = part * threads_in_block() + thread_in_block(), step = parts * threads_in_block();
    const i64 stride = K_ * share_size();
    const double* from = g_.shares + k * share_size();
    const auto sum = [&](i64 at) {
      double s = 0;
#pragma unroll 8
      for (i64 share = 0; share < g_.share_count; ++share) s += from[share * stride + at];
      return s;
    };
    const i64 after = i64(m_) * m_ + i64(m_) * d_;
    if (thread_in_block() < 2) shared[thread_in_block()] = sum(after + m_ + 1 + thread_in_block());
    sync_block();
    const double feature = shared[0], structure = shared[1];
    double* weight = shared + 2;  // of every template node, weightless ones included
    for (int l = thread_in_block(); l < m_; l += threads_in_block()) weight[l] = 0;
    sync_block();
    for (int l = thread_in_block(); l < p_.live_count[k]; l += threads_in_block())
      weight[p_.live[k * p_.padded + l]] = p_.t_h[k * p_.padded + l];
    sync_block();
    for (int e = mine; e < m_ * m_ && g_.template_structure; e += step)
      g_.template_structure[i64(k) * m_ * m_ + e] =
          sum(e) + structure * weight[e / m_] * weight[e % m_] * p_.template_structure[i64(k) * m_ * m_ + e];
    for (int e = mine; e < m_ * d_ && g_.template_x; e += step)
      g_.template_x[i64(k) * m_ * d_ + e] =
          sum(m_ * m_ + e) + feature * weight[e / d_] * p_.template_x[i64(k) * m_ * d_ + e];
    for (int e = mine; e < m_ && g_.template_weights; e += step)
      g_.template_weights[i64(k) * m_ + e] = sum(after + e);
    if (mine == 0 && g_.alpha) g_.alpha[k] = sum(after + m_);
  }

  TFGW_DEVICE i64 share_size() const { return i64(m_) * m_ + i64(m_) * d_ + m_ + 3; }

 private:
  TFGW_DEVICE double alpha(int k) const { return has_structure(p_) ? p_.alpha[k] : 0.0; }
  TFGW_DEVICE double up(i64 b, int k) const { return g_.grad[b * K_ + k]; }
  TFGW_DEVICE double feature_scale(i64 b, int k) const { return 2 * (1 - alpha(k)) * up(b, k); }
  TFGW_DEVICE double structure_scale(i64 b, int k) const { return 2 * alpha(k) * up(b, k); }
  TFGW_DEVICE const double* T(i64 i, int k) const { return g_.plan + (i * K_ + k) * m_; }

  TFGW_DEVICE double mean_potential(int b, int k) const {
    const int first = p_.ptr[b], n = p_.ptr[b + 1] - first;
    double mean = 0;
    for (int i = first; i < first + n; ++i) mean += g_.row_potential[i64(i) * K_ + k] / n;
    return mean;
  }

  // (C T)[i, e], e running over templates and their nodes
  TFGW_DEVICE double structure_row_times(int b, int i, int e) const {
    const int first = p_.ptr[b], n = p_.ptr[b + 1] - first;
    const double* column = g_.plan + i64(first) * K_ * m_ + e;
    double sum = 0;
    if (p_.edge_index) {
      const int at = p_.row_start[i];
      for (int s = at; s < at + p_.row_length[i]; ++s) sum += p_.value[s] * column[i64(p_.column[s]) * K_ * m_];
    } else {
      const double* C = p_.dense + p_.dense_at[b] + i64(i - first) * n;
      for (int j = 0; j < n; ++j) sum += C[j] * column[i64(j) * K_ * m_];
    }
    return sum;
  }

  // 2 α g (C_ij h_i h_j − (T C̄ Tᵀ)_ij), summed over the templates
  TFGW_DEVICE double structure_entry(int b, i64 i, i64 j, double c) const {
    double sum = 0;
    for (int k = 0; k < K_; ++k) {
      const double scale = structure_scale(b, k);
      if (scale == 0) continue;
      double moved = 0;
      for (int a = 0; a < m_; ++a) {
        if (T(i, k)[a] == 0) continue;
        const double* C = p_.template_structure + (i64(k) * m_ + a) * m_;
        for (int l = 0; l < m_; ++l) moved += T(i, k)[a] * C[l] * T(j, k)[l];
      }
      sum += scale * (c * p_.h[i] * p_.h[j] - moved);
    }
    return sum;
  }

  const Problem& p_;
  const Gradients& g_;
  const int K_, m_, d_;
};

}  // namespace tfgw

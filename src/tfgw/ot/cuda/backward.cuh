// Gradients by the envelope theorem (cpp/backward.cpp has the formulas), in two kernels: for the graphs, node by node,
// then for the templates, node by node. All sums have a fixed order, so that results are bitwise reproducible. Most
// entries of a plan are zero; their factors are not read.
#pragma once

#include "block.cuh"
#include "problem.cuh"

namespace tfgw {

struct NodeMemory {
  double factor[kNodeThreads];
  int column[kNodeThreads];
  u32 positive[kNodeThreads / 32];
};

template <int P>
struct TemplateMemory {
  static constexpr int kWarps = kTemplateThreads / 32;
  double part[kWarps][kTile];
  double up[kWarps], potential[kWarps], alpha[kWarps];
  double weight[P];  // of every template node, weightless ones included
};

// Σ mass(l) value(l) over the lanes l in a set, in order.
template <class Mass, class Value, int N>
TFGW_DEVICE void add_lanes(u32 lanes, Mass mass, Value value, double (&sum)[N]) {
  constexpr int kUnroll = 4;
#pragma unroll 1
  while (lanes) {
    double m[kUnroll], v[kUnroll][N];
#pragma unroll
    for (int s = 0; s < kUnroll; ++s) {
      const bool there = lanes != 0;
      const int l = there ? lowest_bit(lanes) : 0;
      lanes &= lanes - 1;
      m[s] = there ? mass(l) : 0.0;
#pragma unroll
      for (int q = 0; q < N; ++q) v[s][q] = there ? value(l, q) : 0.0;
    }
#pragma unroll
    for (int s = 0; s < kUnroll; ++s)
#pragma unroll
      for (int q = 0; q < N; ++q) sum[q] += m[s] * v[s][q];
  }
}

class Backward {
 public:
  TFGW_DEVICE Backward(const Problem& p, const Gradients& g)
      : p_(p), g_(g), K_(int(p.templates)), m_(int(p.columns)), d_(int(p.features)) {}

  // One block per node.
  TFGW_DEVICE void node(int i, NodeMemory& memory) {
    const int b = p_.graph_of[i];
    if (b == p_.graphs) return padding(i);
    if (g_.x) node_features(i, b, memory);
    if (g_.weights && thread_in_block() < 32) {
      double sum = 0;
      for (int k = lane(); k < K_; k += 32)
        sum += up(b, k) * (g_.row_potential[i64(i) * K_ + k] - mean_potential(b, k));
      sum = warp_sum(sum);
      if (lane() == 0) g_.weights[i] = sum;
    }
    if (g_.template_structure) structured_row(i, b, memory);
    if (g_.dense) dense_row(i, b);
  }

  // One thread per edge.
  TFGW_DEVICE void edge(i64 e) {
    const i64 from = p_.edge_index[e], to = p_.edge_index[p_.edges + e];
    const int b = p_.graph_of[from], j = int(to - p_.ptr[b]);
    if (b == p_.graphs) {
      g_.edge_weight[e] = 0;
      return;
    }
    int at = p_.row_start[from];
    while (p_.column[at] != j) ++at;  // repeated edges share an entry
    g_.edge_weight[e] = structure_entry(b, from, to, p_.value[at]);
  }

  TFGW_DEVICE int tiles() const { return (m_ + d_ + kTile - 1) / kTile; }

  // One block per template node and tile of its gradient's columns: first those of the structure, then the features.
  template <int P>
  TFGW_DEVICE void template_node(int k, int a, int tile, TemplateMemory<P>& memory) {
    sum_over_nodes(k, a, tile, memory);
    sum_over_graphs(k, a, tile, memory);
    each(P, [&](int l) { memory.weight[l] = 0; });
    sync_block();
    each(p_.live_count[k], [&](int l) { memory.weight[p_.live[i64(k) * P + l]] = p_.t_h[i64(k) * P + l]; });
    sync_block();
    const auto total = [](const auto& parts, auto part) {
      double sum = 0;
#pragma unroll 4
      for (int w = 0; w < threads_in_block() / 32; ++w) sum += part(parts[w]);
      return sum;
    };
    const auto itself = [](double v) { return v; };
    const double of_structure = 2 * alpha(k), of_features = 2 * (1 - alpha(k));
    const i64 node = i64(k) * m_ + a;
    each(kTile, [&](int t) {
      const int c = tile * kTile + t;
      if (c >= m_ + d_ || !column(k, c)) return;
      const double ups = total(memory.up, itself) * memory.weight[a];
      const double sum = total(memory.part, [&](const double* part) { return part[t]; });
      if (c < m_) {
        const double constant = ups * memory.weight[c] * p_.template_structure[node * m_ + c];
        g_.template_structure[node * m_ + c] = of_structure * (constant - sum);
      } else {
        g_.template_x[node * d_ + c - m_] = of_features * (ups * p_.template_x[node * d_ + c - m_] - sum);
      }
    });
    if (tile > 0 || thread_in_block() > 0) return;
    if (g_.template_weights) g_.template_weights[node] = total(memory.potential, itself);
    if (g_.alpha && a == 0) g_.alpha[k] = total(memory.alpha, itself);
  }

 private:
  TFGW_DEVICE double alpha(int k) const { return has_structure(p_) ? read_only(p_.alpha + k) : 0.0; }
  TFGW_DEVICE double up(i64 b, int k) const { return read_only(g_.grad + b * K_ + k); }
  TFGW_DEVICE double feature_scale(i64 b, int k) const { return 2 * (1 - alpha(k)) * up(b, k); }
  TFGW_DEVICE double structure_scale(i64 b, int k) const { return 2 * alpha(k) * up(b, k); }
  TFGW_DEVICE const double* T(i64 i, int k) const { return g_.plan + (i * K_ + k) * m_; }

  // A padding node after the last graph; its row of C T is never read.
  TFGW_DEVICE void padding(i64 i) {
    if (g_.x) each(d_, [&](int c) { g_.x[i * d_ + c] = 0; });
    if (g_.weights && thread_in_block() == 0) g_.weights[i] = 0;
  }

  // Processes one entry of the plan per thread at a time.
  TFGW_DEVICE void node_features(i64 i, int b, NodeMemory& memory) {
    const int threads = threads_in_block(), t = thread_in_block(), entries = K_ * m_;
    const double scale = sum_unrolled(0, K_, [&](int k) { return feature_scale(b, k); }) * p_.h[i];
#pragma unroll 1
    for (int first_column = 0; first_column < d_; first_column += threads) {
      const int c = first_column + t;
      double moved[1] = {0};
#pragma unroll 1
      for (int first = 0; first < entries; first += threads) {
        const int e = first + t;
        const double mine = e < entries ? read_only(T(i, 0) + e) : 0.0;
        memory.factor[t] = mine != 0 ? feature_scale(b, e / m_) * mine : 0.0;
        const u32 positive = ballot(mine != 0);
        if (lane() == 0) memory.positive[t / 32] = positive;
        sync_block();
        for (int w = 0; w < threads / 32 && c < d_; ++w)
          add_lanes(memory.positive[w], [&](int l) { return memory.factor[32 * w + l]; },
                    [&](int l, int) { return read_only(p_.template_x + i64(first + 32 * w + l) * d_ + c); }, moved);
        sync_block();
      }
      if (c < d_) g_.x[i * d_ + c] = scale * p_.x[i * d_ + c] - moved[0];
    }
  }

  TFGW_DEVICE double mean_potential(int b, int k) const {
    const int first = p_.ptr[b], n = p_.ptr[b + 1] - first;
    return sum_unrolled(first, first + n, [&](int i) { return read_only(g_.row_potential + i64(i) * K_ + k); }) / n;
  }

  // (C T)[i, e], e running over templates and their nodes; one entry of C per thread at a time.
  TFGW_DEVICE void structured_row(i64 i, int b, NodeMemory& memory) {
    const int first = p_.ptr[b], n = p_.ptr[b + 1] - first, t = thread_in_block(), threads = threads_in_block();
    const bool sparse = p_.edge_index != nullptr;
    const int at = sparse ? p_.row_start[i] : 0, count = sparse ? p_.row_length[i] : n;
    const double* const C = sparse ? p_.value + at : p_.dense + p_.dense_at[b] + (i - first) * n;
    double* const out = g_.structured + i * K_ * m_;
    int done = 0;
    do {
      const int here = count - done < threads ? count - done : threads;
      if (t < here) memory.factor[t] = C[done + t], memory.column[t] = sparse ? p_.column[at + done + t] : done + t;
      sync_block();
      each(K_ * m_, [&](int e) {
        const double* const from = T(first, 0) + e;
        const double sum = sum_unrolled(0, here, [&](int s) {
          return memory.factor[s] * read_only(from + i64(memory.column[s]) * K_ * m_);
        });
        out[e] = done == 0 ? sum : out[e] + sum;
      });
      sync_block();
      done += threads;
    } while (done < count);
  }

  TFGW_DEVICE void dense_row(i64 i, int b) {
    const int first = p_.ptr[b], n = p_.ptr[b + 1] - first;
    const i64 row = p_.dense_at[b] + (i - first) * n;
    each(n, [&](int j) { g_.dense[row + j] = structure_entry(b, i, first + j, p_.dense[row + j]); });
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

  // First entry of column c of the summands of a template node's gradient: C T, then x. Null if not requested.
  TFGW_DEVICE const double* column(int k, int c) const {
    if (c < m_) return g_.template_structure ? g_.structured + i64(k) * m_ + c : nullptr;
    return g_.template_x && c < m_ + d_ ? p_.x + c - m_ : nullptr;
  }

  // Σ_i g T_ia (C T | x)_i, each warp over its share of the nodes.
  template <int P>
  TFGW_DEVICE void sum_over_nodes(int k, int a, int tile, TemplateMemory<P>& memory) {
    constexpr int kUnroll = 4;
    const int warps = threads_in_block() / 32, warp = thread_in_block() / 32;
    const int nodes = p_.ptr[p_.graphs], share = (nodes + warps - 1) / warps;
    const int end = (warp + 1) * share < nodes ? (warp + 1) * share : nodes;
    const double* from[kTileColumns];
    i64 stride[kTileColumns];
    double sum[kTileColumns] = {};
#pragma unroll
    for (int q = 0; q < kTileColumns; ++q) {
      const int c = tile * kTile + 32 * q + lane();
      from[q] = column(k, c), stride[q] = c < m_ ? K_ * m_ : d_;
    }
#pragma unroll 1
    for (int first = warp * share; first < end; first += 32 * kUnroll) {
      double mass[kUnroll];
#pragma unroll
      for (int s = 0; s < kUnroll; ++s) {
        const int i = first + 32 * s + lane(), node = i < end ? i : end - 1;
        const double entry = read_only(T(node, k) + a) * up(read_only(p_.graph_of + node), k);
        mass[s] = i < end ? entry : 0.0;
      }
#pragma unroll
      for (int s = 0; s < kUnroll; ++s)
        add_lanes(ballot(mass[s] != 0), [&](int l) { return shfl(mass[s], l); },
                  [&](int l, int q) { return from[q] ? read_only(from[q] + (first + 32 * s + l) * stride[q]) : 0.0; },
                  sum);
    }
#pragma unroll
    for (int q = 0; q < kTileColumns; ++q) memory.part[warp][32 * q + lane()] = sum[q];
  }

  // Σ g, Σ g v_a, Σ g (structure − features), by warps.
  template <int P>
  TFGW_DEVICE void sum_over_graphs(int k, int a, int tile, TemplateMemory<P>& memory) {
    double ups = 0, potentials = 0, costs = 0;
    each(int(p_.graphs), [&](int b) {
      if (p_.ptr[b] == p_.ptr[b + 1]) return;
      const i64 pair = i64(b) * K_ + k;
      ups += up(b, k);
      if (tile > 0) return;
      potentials += up(b, k) * read_only(g_.col_potential + pair * m_ + a);
      if (a == 0) costs += up(b, k) * (read_only(g_.structure_cost + pair) - read_only(g_.feature_cost + pair));
    });
    warp_sums(ups, potentials, costs);
    const int warp = thread_in_block() / 32;
    if (lane() == 0) memory.up[warp] = ups, memory.potential[warp] = potentials, memory.alpha[warp] = costs;
  }

  const Problem& p_;
  const Gradients& g_;
  const int K_, m_, d_;
};

}  // namespace tfgw

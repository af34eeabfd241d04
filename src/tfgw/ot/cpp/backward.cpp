// Gradients by the envelope theorem: the plan T* is held fixed. Per pair, with g the incoming gradient,
//   ∂F  = 2 (1−α) g (diag(h) F − T F̄)        ∂F̄ = 2 (1−α) g (diag(h̄) F̄ − Tᵀ F)
//   ∂C  = 2 α g (C ∘ hhᵀ − T C̄ Tᵀ)           ∂C̄ = 2 α g (C̄ ∘ h̄h̄ᵀ − Tᵀ C T)
//   ∂h, ∂h̄ = g × the centred dual potentials    ∂α = g (structure cost − feature cost)
#include <algorithm>
#include <vector>

#include "batch.hpp"
#include "parallel.hpp"

namespace tfgw {
namespace {

constexpr int64_t kGraphsPerChunk = 16;  // fixed, so that sums over graphs do not depend on the thread count

struct Backward {
  const BatchInput& in;
  const TemplatesInput& tin;
  const SolvedPairs& solved;
  const double* grad;
  const GradientOutput& out;
  std::vector<Graph> graphs;
  std::vector<int64_t> dense_offset;
  std::vector<double> template_h;  // (K, m), each row summing to 1

  int64_t K() const { return tin.count; }
  int64_t m() const { return tin.nodes; }
  int64_t d() const { return in.features; }
  double alpha(int64_t k) const { return in.kind == StructureKind::none ? 0.0 : tin.alpha[k]; }
  const double* plan_row(const Graph& g, int64_t i, int64_t k) const {
    return solved.plan + ((g.first_node + i) * K() + k) * m();
  }

  void graph_features(const Graph& g, int64_t k, double scale) const {
    for (int64_t i = 0; i < g.n; ++i) {
      double* dx = out.x + (g.first_node + i) * d();
      const double* T = plan_row(g, i, k);
      for (int64_t c = 0; c < d(); ++c) dx[c] += scale * g.h[i] * g.x[i * d() + c];
      for (int64_t l = 0; l < m(); ++l) {
        if (T[l] == 0) continue;
        const double* f = tin.x + (k * m() + l) * d();
        for (int64_t c = 0; c < d(); ++c) dx[c] -= scale * T[l] * f[c];
      }
    }
  }

  void graph_weights(const Graph& g, int64_t k, double scale) const {
    double mean = 0;
    for (int64_t i = 0; i < g.n; ++i) mean += solved.row_potential[(g.first_node + i) * K() + k] / g.n;
    for (int64_t i = 0; i < g.n; ++i)
      out.weights[g.first_node + i] += scale * (solved.row_potential[(g.first_node + i) * K() + k] - mean);
  }

  // y[j, a] = Σ_l C̄_al T_jl, so that (T C̄ Tᵀ)_ij = Σ_a T_ia y[j, a].
  std::vector<double> transported_template(const Graph& g, int64_t k) const {
    std::vector<double> y(size_t(g.n) * m(), 0.0);
    const double* C = tin.structure + k * m() * m();
    for (int64_t j = 0; j < g.n; ++j) {
      const double* T = plan_row(g, j, k);
      for (int64_t l = 0; l < m(); ++l)
        if (T[l] != 0)
          for (int64_t a = 0; a < m(); ++a) y[j * m() + a] += C[a * m() + l] * T[l];
    }
    return y;
  }

  // `value` is C_ij; edges that share both ends share their sum and its gradient.
  double structure_entry(const Graph& g, const std::vector<double>& y, int64_t k, int64_t i, int64_t j,
                         double value) const {
    const double* T = plan_row(g, i, k);
    double s = value * g.h[i] * g.h[j];
    for (int64_t a = 0; a < m(); ++a)
      if (T[a] != 0) s -= T[a] * y[j * m() + a];
    return s;
  }

  void graph_side(int64_t b, const std::vector<std::vector<int64_t>>& edges_of) const {
    const Graph& g = graphs[b];
    for (int64_t k = 0; k < K(); ++k) {
      const double up = grad[b * K() + k];
      if (up == 0 || g.n == 0) continue;
      if (out.x) graph_features(g, k, 2 * (1 - alpha(k)) * up);
      if (out.weights) graph_weights(g, k, up);
      if (out.structure && alpha(k) > 0) graph_structure(g, b, k, 2 * alpha(k) * up, edges_of);
    }
  }

  void graph_structure(const Graph& g, int64_t b, int64_t k, double scale,
                       const std::vector<std::vector<int64_t>>& edges_of) const {
    const std::vector<double> y = transported_template(g, k);
    if (in.kind == StructureKind::dense) {
      double* dC = out.structure + dense_offset[b];
      for (int64_t i = 0; i < g.n; ++i)
        for (int64_t j = 0; j < g.n; ++j)
          dC[i * g.n + j] += scale * structure_entry(g, y, k, i, j, g.dense[i * g.n + j]);
      return;
    }
    for (int64_t e : edges_of[b]) {
      const int64_t i = in.edge_index[e] - g.first_node, j = in.edge_index[in.edges + e] - g.first_node;
      const auto begin = g.C.col.begin() + g.C.ptr[i], end = g.C.col.begin() + g.C.ptr[i + 1];
      const double value = g.C.value[std::lower_bound(begin, end, int32_t(j)) - g.C.col.begin()];
      out.structure[e] += scale * structure_entry(g, y, k, i, j, value);
    }
  }

  // Sums over the graphs of one chunk, for one template.
  struct TemplatePart {
    std::vector<double> structure, x, weights;
    double alpha = 0;
  };

  void template_features(const Graph& g, int64_t k, double scale, double* dF) const {
    const double* F = tin.x + k * m() * d();
    for (int64_t l = 0; l < m(); ++l)
      for (int64_t c = 0; c < d(); ++c) dF[l * d() + c] += scale * template_h[k * m() + l] * F[l * d() + c];
    for (int64_t i = 0; i < g.n; ++i) {
      const double* T = plan_row(g, i, k);
      for (int64_t l = 0; l < m(); ++l)
        if (T[l] != 0)
          for (int64_t c = 0; c < d(); ++c) dF[l * d() + c] -= scale * T[l] * g.x[i * d() + c];
    }
  }

  // ct: a buffer for C T, n × m.
  void template_structure(const Graph& g, int64_t k, double scale, std::vector<double>& ct, double* dC) const {
    ct.assign(size_t(g.n) * m(), 0.0);
    g.for_each_entry([&](int i, int j, double c) {
      const double* T = plan_row(g, j, k);
      for (int64_t l = 0; l < m(); ++l) ct[i * m() + l] += c * T[l];
    });
    for (int64_t i = 0; i < g.n; ++i) {
      const double* T = plan_row(g, i, k);
      for (int64_t a = 0; a < m(); ++a)
        if (T[a] != 0)
          for (int64_t l = 0; l < m(); ++l) dC[a * m() + l] -= scale * T[a] * ct[i * m() + l];
    }
    const double* C = tin.structure + k * m() * m();
    const double* h = &template_h[k * m()];
    for (int64_t a = 0; a < m(); ++a)
      for (int64_t l = 0; l < m(); ++l) dC[a * m() + l] += scale * C[a * m() + l] * h[a] * h[l];
  }

  TemplatePart template_side(int64_t first, int64_t last, int64_t k, std::vector<double>& ct) const {
    TemplatePart part;
    if (out.template_structure) part.structure.assign(m() * m(), 0.0);
    if (out.template_x) part.x.assign(m() * d(), 0.0);
    if (out.template_weights) part.weights.assign(m(), 0.0);
    for (int64_t b = first; b < last; ++b) {
      const Graph& g = graphs[b];
      const int64_t pair = b * K() + k;
      const double up = grad[pair];
      if (up == 0 || g.n == 0) continue;
      if (out.template_x) template_features(g, k, 2 * (1 - alpha(k)) * up, part.x.data());
      if (out.template_structure && alpha(k) > 0)
        template_structure(g, k, 2 * alpha(k) * up, ct, part.structure.data());
      if (out.template_weights)
        for (int64_t l = 0; l < m(); ++l) part.weights[l] += up * solved.col_potential[pair * m() + l];
      part.alpha += up * (solved.structure_cost[pair] - solved.feature_cost[pair]);
    }
    return part;
  }

  void add(const TemplatePart& part, int64_t k) const {
    const auto add_into = [&](const std::vector<double>& from, double* to) {
      for (size_t e = 0; e < from.size(); ++e) to[k * from.size() + e] += from[e];
    };
    add_into(part.structure, out.template_structure);
    add_into(part.x, out.template_x);
    add_into(part.weights, out.template_weights);
    if (out.alpha) out.alpha[k] += part.alpha;
  }
};

std::vector<std::vector<int64_t>> edges_by_graph(const BatchInput& in) {
  std::vector<std::vector<int64_t>> edges(in.graphs);
  for (int64_t e = 0; e < in.edges; ++e) {
    const int64_t* end = std::upper_bound(in.ptr, in.ptr + in.graphs + 1, in.edge_index[e]);
    edges[end - in.ptr - 1].push_back(e);
  }
  return edges;
}

}  // namespace

void backward_batch(const BatchInput& in, const TemplatesInput& tin, const SolvedPairs& solved, const double* grad,
                    int threads, const GradientOutput& out) {
  Backward work{in, tin, solved, grad, out, prepare_graphs(in), {}, {}};
  for (const Graph& g : work.graphs)
    work.dense_offset.push_back(work.dense_offset.empty() ? 0 : work.dense_offset.back());
  for (size_t b = 1; b < work.graphs.size(); ++b)
    work.dense_offset[b] = work.dense_offset[b - 1] + int64_t(work.graphs[b - 1].n) * work.graphs[b - 1].n;
  work.template_h.assign(tin.weights, tin.weights + tin.count * tin.nodes);
  for (int64_t k = 0; k < tin.count; ++k) {
    double total = 0;
    for (int64_t l = 0; l < tin.nodes; ++l) total += tin.weights[k * tin.nodes + l];
    for (int64_t l = 0; l < tin.nodes; ++l) work.template_h[k * tin.nodes + l] /= total;
  }

  if (out.x || out.weights || out.structure) {
    std::vector<std::vector<int64_t>> edges;
    if (out.structure && in.kind == StructureKind::sparse) edges = edges_by_graph(in);
    parallel_for(in.graphs, threads, [&] { return [&](int64_t b) { work.graph_side(b, edges); }; });
  }
  if (out.template_structure || out.template_x || out.template_weights || out.alpha) {
    const int64_t chunks = (in.graphs + kGraphsPerChunk - 1) / kGraphsPerChunk;
    std::vector<Backward::TemplatePart> parts(chunks * tin.count);
    parallel_for(chunks * tin.count, threads, [&] {
      return [&, ct = std::vector<double>()](int64_t item) mutable {
        const int64_t first = item / tin.count * kGraphsPerChunk;
        parts[item] =
            work.template_side(first, std::min(in.graphs, first + kGraphsPerChunk), item % tin.count, ct);
      };
    });
    for (int64_t item = 0; item < chunks * tin.count; ++item) work.add(parts[item], item % tin.count);
  }
}

}  // namespace tfgw

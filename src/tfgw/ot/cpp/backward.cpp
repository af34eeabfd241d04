// Gradients by the envelope theorem: the plan T* is held fixed. Per pair, with g the incoming gradient,
//   ∂F  = 2 (1−α) g (diag(h) F − T F̄)        ∂F̄ = 2 (1−α) g (diag(h̄) F̄ − Tᵀ F)
//   ∂C  = 2 α g (C ∘ hhᵀ − T C̄ Tᵀ)           ∂C̄ = 2 α g (C̄ ∘ h̄h̄ᵀ − Tᵀ C T)
//   ∂h, ∂h̄ = g × the centred dual potentials    ∂α = g (structure cost − feature cost)
// Graphs are processed in chunks: the gradients of a chunk's graphs, and its contribution to each template's gradients.
// These contributions are added in chunk order, so that the result does not depend on the number of threads.
#include <algorithm>
#include <vector>

#include "batch.hpp"
#include "kernels.hpp"
#include "parallel.hpp"
#include "transport.hpp"

namespace tfgw {
namespace {

constexpr int64_t kGraphsPerChunk = 8;

// Gradients of one template, summed over the graphs of one chunk. Empty if not requested.
struct TemplateSums {
  std::vector<double> structure, x, weights;  // (m, m), (m, d), (m)
  double alpha = 0;
  double feature_scale = 0, structure_scale = 0;  // factors of the terms that do not depend on the graph
};

class Backward {
 public:
  Backward(const PreparedBatch& batch, const SolvedPairs& solved, const double* grad, const GradientOutput& out)
      : in_(batch.graphs_input), tin_(batch.templates_input), graphs_(batch.graphs), templates_(batch.templates),
        solved_(solved), grad_(grad), out_(out), K_(tin_.count), m_(tin_.nodes), d_(in_.features) {
    int64_t offset = 0;
    for (const Graph& g : graphs_) {
      dense_offset_.push_back(offset);
      offset += int64_t(g.n) * g.n;
    }
    if (in_.kind == StructureKind::sparse && !in_.edge_weight) out_.structure = nullptr;
    if (out_.structure && in_.kind == StructureKind::sparse) sort_edges_by_graph();
  }

  void run(int threads) const {
    const int64_t chunks = (in_.graphs + kGraphsPerChunk - 1) / kGraphsPerChunk;
    std::vector<TemplateSums> sums(chunks * K_);
    const auto work = [&](int64_t item) {  // the K templates of a chunk, and then its graphs
      const int64_t chunk = item / (K_ + 1), k = item % (K_ + 1);
      if (k < K_)
        sums[chunk * K_ + k] = template_sums(chunk, k);
      else
        graph_gradients(chunk);
    };
    parallel_for(chunks * (K_ + 1), threads, [&] { return work; }, [] {});
    const auto add_up = [&](int64_t k) {
      for (int64_t chunk = 0; chunk < chunks; ++chunk) add(sums[chunk * K_ + k], k);
    };
    parallel_for(K_, threads, [&] { return add_up; }, [] {});
  }

 private:
  double alpha(int64_t k) const { return in_.kind == StructureKind::none ? 0.0 : tin_.alpha[k]; }
  double feature_scale(int64_t k, double up) const { return 2 * (1 - alpha(k)) * up; }
  double structure_scale(int64_t k, double up) const { return 2 * alpha(k) * up; }

  // Calls visit(graph, b, up) for each graph b of a chunk whose distance to template k has a gradient, `up`.
  template <class Visit>
  void for_each_graph(int64_t chunk, int64_t k, Visit visit) const {
    const int64_t first = chunk * kGraphsPerChunk, last = std::min(in_.graphs, first + kGraphsPerChunk);
    for (int64_t b = first; b < last; ++b)
      if (const double up = grad_[b * K_ + k]; up != 0 && graphs_[b].n > 0) visit(graphs_[b], b, up);
  }

  TemplateSums template_sums(int64_t chunk, int64_t k) const {
    TemplateSums sums;
    if (out_.template_structure) sums.structure.assign(m_ * m_, 0.0);
    if (out_.template_x) sums.x.assign(m_ * d_, 0.0);
    if (out_.template_weights) sums.weights.assign(m_, 0.0);
    SparsePlan read;
    std::vector<double> scratch;
    for_each_graph(chunk, k, [&](const Graph& g, int64_t b, double up) {
      const int64_t pair = b * K_ + k;
      const double feature = feature_scale(k, up), structure = structure_scale(k, up);
      const SparsePlan& plan = plan_of(b, k, read);
      sums.alpha += up * (solved_.structure_cost[pair] - solved_.feature_cost[pair]);
      sums.feature_scale += feature;
      sums.structure_scale += structure;
      if (out_.template_weights) kernels().axpy(m_, up, solved_.col_potential + pair * m_, sums.weights.data());
      if (out_.template_x && feature != 0) template_features(g, feature, plan, sums.x.data());
      if (out_.template_structure && structure != 0)
        template_structure(g, structure, plan, scratch, sums.structure.data());
    });
    return sums;
  }

  void graph_gradients(int64_t chunk) const {
    if (!out_.weights && !out_.x && !out_.structure) return;
    SparsePlan read;
    std::vector<double> scratch;
    for (int64_t k = 0; k < K_; ++k)
      for_each_graph(chunk, k, [&](const Graph& g, int64_t b, double up) {
        const double feature = feature_scale(k, up), structure = structure_scale(k, up);
        const SparsePlan& plan = plan_of(b, k, read);
        if (out_.weights) graph_weights(g, k, up);
        if (out_.x && feature != 0) graph_features(g, k, feature, plan);
        if (out_.structure && structure != 0) graph_structure(g, b, k, structure, plan, scratch);
      });
  }

  // The plan kept by the solve, or the one read from its dense output into `read`.
  const SparsePlan& plan_of(int64_t b, int64_t k, SparsePlan& read) const {
    if (solved_.plans) return solved_.plans[b * K_ + k];
    const Graph& g = graphs_[b];
    read.clear();
    for (int32_t i = 0; i < g.n; ++i) {
      const double* T = solved_.dense_plans + ((g.first_node + i) * K_ + k) * m_;
      for (int32_t l = 0; l < m_; ++l)
        if (T[l] != 0) read.push(i, l, T[l]);
    }
    return read;
  }

  // For each entry of the plan, out[to, :] += scale * mass * in[from, :].
  static void add_rows(int64_t width, double scale, const SparsePlan& plan, const std::vector<int32_t>& from,
                       const std::vector<int32_t>& to, const double* in, double* out) {
    kernels().add_rows(width, plan.count(), scale, plan.mass.data(), from.data(), to.data(), in, out);
  }

  void graph_weights(const Graph& g, int64_t k, double scale) const {
    double mean = 0;
    for (int64_t i = 0; i < g.n; ++i) mean += solved_.row_potential[(g.first_node + i) * K_ + k] / g.n;
    for (int64_t i = 0; i < g.n; ++i)
      out_.weights[g.first_node + i] += scale * (solved_.row_potential[(g.first_node + i) * K_ + k] - mean);
  }

  void graph_features(const Graph& g, int64_t k, double scale, const SparsePlan& plan) const {
    double* dx = out_.x + g.first_node * d_;
    for (int64_t i = 0; i < g.n; ++i) kernels().axpy(d_, scale * g.h[i], g.x + i * d_, dx + i * d_);
    add_rows(d_, -scale, plan, plan.col, plan.row, tin_.x + k * m_ * d_, dx);
  }

  void template_features(const Graph& g, double scale, const SparsePlan& plan, double* dF) const {
    add_rows(d_, -scale, plan, plan.row, plan.col, g.x, dF);
  }

  // Tᵀ C T, with C T accumulated over the entries of the plan.
  void template_structure(const Graph& g, double scale, const SparsePlan& plan, std::vector<double>& ct,
                          double* dC) const {
    ct.assign(size_t(g.n) * m_, 0.0);
    for (int e = 0; e < plan.count(); ++e)
      g.for_each_in_column(plan.row[e], [&](int i, double c) { ct[i * m_ + plan.col[e]] += c * plan.mass[e]; });
    add_rows(m_, -scale, plan, plan.row, plan.col, ct.data(), dC);
  }

  void graph_structure(const Graph& g, int64_t b, int64_t k, double scale, const SparsePlan& plan,
                       std::vector<double>& tc) const {
    tc.assign(size_t(g.n) * m_, 0.0);  // T C̄, so that (T C̄ Tᵀ)_ij = Σ_l tc[i, l] T_jl
    add_rows(m_, 1, plan, plan.col, plan.row, tin_.structure + k * m_ * m_, tc.data());
    std::vector<int> start(g.n + 1, 0);  // the plan's entries are sorted by row
    for (int row : plan.row) ++start[row + 1];
    for (int i = 0; i < g.n; ++i) start[i + 1] += start[i];
    const auto entry = [&](int64_t i, int64_t j, double c) {
      double s = c * g.h[i] * g.h[j];
      for (int e = start[j]; e < start[j + 1]; ++e) s -= tc[i * m_ + plan.col[e]] * plan.mass[e];
      return scale * s;
    };
    if (in_.kind == StructureKind::dense) {
      double* dC = out_.structure + dense_offset_[b];
      g.for_each_entry([&](int i, int j, double c) { dC[int64_t(i) * g.n + j] += entry(i, j, c); });
      return;
    }
    for (int64_t s = edge_start_[b]; s < edge_start_[b + 1]; ++s) {
      const int64_t e = edges_[s], i = in_.edge_index[e] - g.first_node;
      const int32_t j = int32_t(in_.edge_index[in_.edges + e] - g.first_node);
      const auto begin = g.C.col.begin() + g.C.ptr[i], end = g.C.col.begin() + g.C.ptr[i + 1];
      const double c = g.C.value[std::lower_bound(begin, end, j) - g.C.col.begin()];  // repeated edges share it
      out_.structure[e] += entry(i, j, c);
    }
  }

  void sort_edges_by_graph() {
    std::vector<int64_t> graph_of(in_.nodes);
    for (int64_t b = 0; b < in_.graphs; ++b) std::fill(&graph_of[0] + in_.ptr[b], &graph_of[0] + in_.ptr[b + 1], b);
    edge_start_.assign(in_.graphs + 1, 0);
    for (int64_t e = 0; e < in_.edges; ++e) ++edge_start_[graph_of[in_.edge_index[e]] + 1];
    for (int64_t b = 0; b < in_.graphs; ++b) edge_start_[b + 1] += edge_start_[b];
    std::vector<int64_t> fill(edge_start_.begin(), edge_start_.end() - 1);
    edges_.resize(in_.edges);
    for (int64_t e = 0; e < in_.edges; ++e) edges_[fill[graph_of[in_.edge_index[e]]]++] = e;
  }

  void add(const TemplateSums& sums, int64_t k) const {
    const Template& t = templates_[k];
    const auto add_into = [](const std::vector<double>& from, double* to) {
      kernels().axpy(int64_t(from.size()), 1.0, from.data(), to);
    };
    if (out_.alpha) out_.alpha[k] += sums.alpha;
    if (out_.template_weights) add_into(sums.weights, out_.template_weights + k * m_);
    if (out_.template_x) {
      add_into(sums.x, out_.template_x + k * m_ * d_);
      for (int l = 0; l < t.m; ++l) {
        const int64_t at = (k * m_ + t.live[l]) * d_;
        kernels().axpy(d_, sums.feature_scale * t.h[l], tin_.x + at, out_.template_x + at);
      }
    }
    if (out_.template_structure) {
      add_into(sums.structure, out_.template_structure + k * m_ * m_);
      for (int l = 0; l < t.m; ++l)
        for (int a = 0; a < t.m; ++a) {
          const int64_t at = (k * m_ + t.live[l]) * m_ + t.live[a];
          out_.template_structure[at] += sums.structure_scale * t.h[l] * t.h[a] * tin_.structure[at];
        }
    }
  }

  const BatchInput& in_;
  const TemplatesInput& tin_;
  const std::vector<Graph>& graphs_;
  const std::vector<Template>& templates_;
  const SolvedPairs& solved_;
  const double* grad_;
  GradientOutput out_;
  const int64_t K_, m_, d_;
  std::vector<int64_t> dense_offset_, edge_start_, edges_;
};

}  // namespace

void backward_batch(const PreparedBatch& batch, const SolvedPairs& solved, const double* grad, int threads,
                    const GradientOutput& out) {
  Backward(batch, solved, grad, out).run(threads);
}

}  // namespace tfgw

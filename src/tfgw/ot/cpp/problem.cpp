#include "problem.hpp"

#include <algorithm>
#include <numeric>

#include "canonical.hpp"
#include "kernels.hpp"
#include "parallel.hpp"
#include "transport.hpp"

namespace tfgw {
namespace {

constexpr int64_t kTemplateEffort = int64_t(1) << 22;  // of canonical_order: low, because it runs in every call

void normalise(std::vector<double>& h) {
  const double total = std::accumulate(h.begin(), h.end(), 0.0);
  for (double& w : h) w /= total;
}

double squared_norm(const double* x, int64_t count) {
  double norm = 0;
  for (int64_t c = 0; c < count; ++c) norm += x[c] * x[c];
  return norm;
}

// A weight too small for the grid keeps one unit, so that every kept column has a demand (transport.cpp needs it).
std::vector<int64_t> positive_fixed_point(const std::vector<double>& h) {
  std::vector<int64_t> fixed(h.size());
  to_fixed_point(h.data(), int(h.size()), fixed.data());
  const auto heaviest = std::max_element(fixed.begin(), fixed.end());
  for (int64_t& f : fixed)
    if (f < 1) *heaviest -= 1 - f, f = 1;
  return fixed;
}

Csr slice_rows(const Csr& all, int64_t first, int n) {
  Csr out;
  const int64_t begin = all.ptr[first], end = all.ptr[first + n];
  out.ptr.resize(n + 1);
  for (int i = 0; i <= n; ++i) out.ptr[i] = all.ptr[first + i] - begin;
  out.col.resize(end - begin);
  for (int64_t e = begin; e < end; ++e) out.col[e - begin] = int32_t(all.col[e] - first);
  out.value.assign(all.value.begin() + begin, all.value.begin() + end);
  return out;
}

// Visiting rows in order fills each row of the transpose in order too, so its columns come out sorted.
Csr transpose(const Csr& a, int n) {
  Csr t;
  t.ptr.assign(n + 1, 0);
  t.col.resize(a.col.size());
  t.value.resize(a.value.size());
  for (int32_t c : a.col) ++t.ptr[c + 1];
  for (int i = 0; i < n; ++i) t.ptr[i + 1] += t.ptr[i];
  std::vector<int64_t> fill(t.ptr.begin(), t.ptr.end() - 1);
  for (int i = 0; i < n; ++i)
    for (int64_t e = a.ptr[i]; e < a.ptr[i + 1]; ++e) {
      const int64_t to = fill[a.col[e]]++;
      t.col[to] = i;
      t.value[to] = a.value[e];
    }
  return t;
}

void add_moments(Graph& g, int i, int j, double c) {
  g.out_mean[i] += c * g.h[j];
  g.in_mean[j] += c * g.h[i];
  g.square[i] += c * c * g.h[j];
  g.square[j] += c * c * g.h[i];
  g.constant += c * c * g.h[i] * g.h[j];
}

void prepare_sparse(Graph& g, const Csr& adjacency) {
  g.C = slice_rows(adjacency, g.first_node, g.n);
  Csr t = transpose(g.C, g.n);
  g.symmetric = t.ptr == g.C.ptr && t.col == g.C.col && t.value == g.C.value;
  if (!g.symmetric) g.Ct = std::move(t);
  for (int i = 0; i < g.n; ++i)
    for (int64_t e = g.C.ptr[i]; e < g.C.ptr[i + 1]; ++e) add_moments(g, i, g.C.col[e], g.C.value[e]);
}

void prepare_dense(Graph& g) {
  for (int i = 0; i < g.n; ++i)
    for (int j = 0; j < g.n; ++j) {
      add_moments(g, i, j, g.dense[int64_t(i) * g.n + j]);
      if (g.dense[int64_t(i) * g.n + j] != g.dense[int64_t(j) * g.n + i]) g.symmetric = false;
    }
}

// All edges of the batch as rows of one sparse matrix. With weights, repeated entries add up; without, edges form a set
// without loops.
Csr build_adjacency(const BatchInput& in) {
  const int64_t* source = in.edge_index;
  const int64_t* target = in.edge_index + in.edges;
  std::vector<int64_t> start(in.nodes + 1, 0);
  for (int64_t e = 0; e < in.edges; ++e) ++start[source[e] + 1];
  for (int64_t i = 0; i < in.nodes; ++i) start[i + 1] += start[i];
  std::vector<int64_t> fill(start.begin(), start.end() - 1), order(in.edges);
  for (int64_t e = 0; e < in.edges; ++e) order[fill[source[e]]++] = e;

  Csr out;
  out.ptr.assign(in.nodes + 1, 0);
  out.col.reserve(in.edges);
  out.value.reserve(in.edges);
  for (int64_t i = 0; i < in.nodes; ++i) {
    const auto begin = order.begin() + start[i], end = order.begin() + start[i + 1];
    const auto by_target = [&](int64_t a, int64_t b) { return target[a] != target[b] ? target[a] < target[b] : a < b; };
    if (!std::is_sorted(begin, end, by_target)) std::sort(begin, end, by_target);
    for (auto e = begin; e != end; ++e) {
      const double w = in.edge_weight ? in.edge_weight[*e] : 1.0;
      if (!in.edge_weight && target[*e] == i) continue;
      if (e != begin && target[*e] == target[*(e - 1)]) {
        if (in.edge_weight) out.value.back() += w;
      } else {
        out.col.push_back(int32_t(target[*e]));
        out.value.push_back(w);
      }
    }
    out.ptr[i + 1] = int64_t(out.col.size());
  }
  return out;
}

Graph prepare_graph(const BatchInput& in, int64_t b, const Csr& adjacency, const double* dense) {
  Graph g;
  g.first_node = in.ptr[b];
  g.n = int(in.ptr[b + 1] - in.ptr[b]);
  g.x = in.x + g.first_node * in.features;
  g.kind = in.kind;
  if (g.n == 0) return g;
  g.h.assign(in.weights + g.first_node, in.weights + g.first_node + g.n);
  normalise(g.h);
  g.supply.resize(g.n);
  to_fixed_point(g.h.data(), g.n, g.supply.data());
  g.square.assign(g.n, 0.0);
  g.out_mean = g.in_mean = g.square;
  g.x_norm.resize(g.n);
  for (int i = 0; i < g.n; ++i) g.x_norm[i] = squared_norm(g.x + i * in.features, in.features);
  if (in.kind == StructureKind::sparse) {
    prepare_sparse(g, adjacency);
  } else if (in.kind == StructureKind::dense) {
    g.dense = dense;
    prepare_dense(g);
  }
  return g;
}

// The nodes that have weight, in an order that does not depend on their numbering: by weight and features, and by
// structure among equals.
std::vector<int32_t> live_nodes(const TemplatesInput& in, int64_t k) {
  const int64_t m = in.nodes, d = in.features;
  std::vector<int32_t> live;
  std::vector<double> rows;
  live.reserve(m), rows.reserve(m * (1 + d));
  for (int64_t l = 0; l < m; ++l) {
    if (in.weights[k * m + l] <= 0) continue;
    live.push_back(int32_t(l));
    rows.push_back(in.weights[k * m + l]);
    rows.insert(rows.end(), in.x + (k * m + l) * d, in.x + (k * m + l + 1) * d);
  }
  const int count = int(live.size());
  std::vector<int32_t> rank = rank_rows(rows.data(), count, 1 + d), order(count);
  const bool distinct = *std::max_element(rank.begin(), rank.end()) == count - 1;
  if (distinct || !in.structure) {
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return rank[a] < rank[b]; });
  } else {
    std::vector<Tie> ties;
    ties.reserve(4 * size_t(count));
    const double* S = in.structure + k * m * m;
    for (int a = 0; a < count; ++a)
      for (int b = 0; b < count; ++b)
        if (const double c = S[live[a] * m + live[b]]; c != 0) ties.push_back({a, b, colour_of(c)});
    Interrupt never;
    order = canonical_order(ColouredGraph(std::move(rank), std::move(ties)), kTemplateEffort, never).order;
  }
  for (int32_t& l : order) l = live[l];
  return order;
}

}  // namespace

Template prepare_template(const TemplatesInput& in, int64_t k) {
  Template t;
  const int64_t m = in.nodes, d = in.features;
  t.live = live_nodes(in, k);
  t.m = int(t.live.size());
  t.ld = padded(t.m);
  t.alpha = in.alpha[k];
  t.h.resize(t.m);
  for (int l = 0; l < t.m; ++l) t.h[l] = in.weights[k * m + t.live[l]];
  normalise(t.h);
  t.demand = positive_fixed_point(t.h);

  t.ft.assign(d * t.ld, 0.0);
  for (int64_t c = 0; c < d; ++c)
    for (int l = 0; l < t.m; ++l) t.ft[c * t.ld + l] = in.x[(k * m + t.live[l]) * d + c];

  t.f_norm.assign(t.m, 0.0);
  for (int64_t c = 0; c < d; ++c)
    for (int l = 0; l < t.m; ++l) t.f_norm[l] += t.ft[c * t.ld + l] * t.ft[c * t.ld + l];

  t.square.assign(m, 0.0);
  if (!in.structure) return t;
  const double* S = in.structure + k * m * m;
  const auto squared = [&](int64_t a, int64_t b) { return S[a * m + b] * S[a * m + b]; };
  for (int64_t a = 0; a < m; ++a) {
    double sum = 0;
    for (int b = 0; b < t.m; ++b) sum += (squared(a, t.live[b]) + squared(t.live[b], a)) * t.h[b];
    t.square[a] = sum;
  }
  t.C.assign(int64_t(t.m) * t.ld, 0.0);
  t.Ct = t.mean = t.C;
  t.out_mean.resize(t.m);
  t.in_mean.resize(t.m);
  double constant = 0;
  for (int a = 0; a < t.m; ++a) {
    double out = 0, into = 0;
    for (int b = 0; b < t.m; ++b) {
      const double forth = S[t.live[a] * m + t.live[b]], back = S[t.live[b] * m + t.live[a]];
      t.C[a * t.ld + b] = forth;
      t.Ct[a * t.ld + b] = back;
      t.mean[a * t.ld + b] = 0.5 * (forth + back);
      out += forth * t.h[b];
      into += back * t.h[b];
      constant += forth * forth * t.h[a] * t.h[b];
    }
    t.out_mean[a] = out, t.in_mean[a] = into;
  }
  t.constant = constant;
  return t;
}

double Graph::at(int i, int j) const {
  if (kind == StructureKind::dense) return dense[int64_t(i) * n + j];
  if (kind == StructureKind::none) return 0;
  const auto first = C.col.begin() + C.ptr[i], last = C.col.begin() + C.ptr[i + 1];
  const auto found = std::lower_bound(first, last, j);
  return found != last && *found == j ? C.value[size_t(found - C.col.begin())] : 0.0;
}

void prepare(const BatchInput& in, const TemplatesInput& templates_in, int threads, std::vector<Graph>& graphs,
             std::vector<Template>& templates) {
  const Csr adjacency = in.kind == StructureKind::sparse ? build_adjacency(in) : Csr{};
  std::vector<int64_t> dense_at(size_t(in.graphs) + 1, 0);
  for (int64_t b = 0; b < in.graphs; ++b) {
    const int64_t n = in.ptr[b + 1] - in.ptr[b];
    dense_at[b + 1] = dense_at[b] + n * n;
  }
  graphs.resize(size_t(in.graphs));
  templates.resize(size_t(templates_in.count));
  const auto prepare_one = [&](int64_t item) {
    const int64_t b = item - templates_in.count;  // templates first: they take longer
    if (b < 0)
      templates[item] = prepare_template(templates_in, item);
    else
      graphs[b] = prepare_graph(in, b, adjacency, in.dense ? in.dense + dense_at[b] : nullptr);
  };
  parallel_for(templates_in.count + in.graphs, threads, [&] { return prepare_one; }, [] {});
}

}  // namespace tfgw

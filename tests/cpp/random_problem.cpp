#include "random_problem.hpp"

#include <cmath>
#include <limits>

namespace tfgw::test {
namespace {

int size(Bytes& bytes, int usual, int largest) { return 1 + bytes.below(bytes.one_in(16) ? largest : usual); }

double number(Bytes& bytes, Values values) {
  if (values == Values::continuous) return 2 * bytes.unit() - 1 + 1e-6 * bytes.unit();
  if (values == Values::tied) return double(bytes.below(3));
  const double magnitude = std::ldexp(1 + bytes.unit(), bytes.below(660) - 330);
  return bytes.one_in(2) ? -magnitude : bytes.one_in(4) ? 0.0 : magnitude;
}

std::vector<double> numbers(Bytes& bytes, Values values, int64_t count) {
  std::vector<double> out(count);
  for (double& v : out) v = number(bytes, values);
  return out;
}

double weight(Bytes& bytes, Values values) {
  if (values == Values::tied) return double(bytes.below(3));
  if (values == Values::extreme) return bytes.one_in(3) ? 0.0 : std::ldexp(1.0, -bytes.below(80));
  return 0.1 + bytes.unit();
}

void add_weights(Bytes& bytes, Values values, int64_t count, std::vector<double>& out) {
  const size_t first = out.size();
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(weight(bytes, values));
    total += out.back();
  }
  if (total == 0) total = out[first] = 1;
  for (size_t i = first; i < out.size(); ++i) out[i] /= total;
}

void add_edges(Bytes& bytes, RandomProblem& p, bool directed) {
  std::vector<int64_t> source, target;
  for (int64_t b = 0; b < p.graphs(); ++b) {
    const int n = int(p.ptr[b + 1] - p.ptr[b]);
    for (int e = bytes.below(3 * n + 1); e > 0; --e) {
      const int64_t i = p.ptr[b] + bytes.below(n), j = p.ptr[b] + bytes.below(n);
      source.push_back(i), target.push_back(j);
      if (!directed) source.push_back(j), target.push_back(i);
    }
  }
  p.edge_index = source;
  p.edge_index.insert(p.edge_index.end(), target.begin(), target.end());
  if (bytes.one_in(2)) p.edge_weight = numbers(bytes, p.values, int64_t(source.size()));
}

void add_dense(Bytes& bytes, RandomProblem& p, bool directed) {
  for (int64_t b = 0; b < p.graphs(); ++b) {
    const int64_t n = p.ptr[b + 1] - p.ptr[b];
    std::vector<double> C = numbers(bytes, p.values, n * n);
    for (int64_t i = 0; i < n && !directed; ++i)
      for (int64_t j = 0; j < i; ++j) C[i * n + j] = C[j * n + i];
    p.dense.insert(p.dense.end(), C.begin(), C.end());
  }
}

}  // namespace

RandomProblem make_problem(Bytes& bytes, Values values) {
  RandomProblem p;
  p.values = values;
  const int graphs = size(bytes, 4, 9);
  p.ptr = {0};
  for (int b = 0; b < graphs; ++b) {
    p.ptr.push_back(p.ptr.back() + size(bytes, 9, 60));
    p.batch.resize(p.ptr.back(), b);
    add_weights(bytes, values, p.ptr[b + 1] - p.ptr[b], p.weights);
  }
  for (int empty = bytes.one_in(8) ? 2 : 0; empty > 0; --empty) p.ptr.push_back(p.ptr.back());
  p.templates = size(bytes, 3, 6);
  p.template_nodes = size(bytes, 9, 140);
  p.features = bytes.below(4);
  for (int64_t k = 0; k < p.templates; ++k) {
    add_weights(bytes, values, p.template_nodes, p.template_weights);
    p.alpha.push_back(bytes.one_in(4) ? 1.0 : bytes.one_in(4) ? 0.0 : bytes.unit());
  }
  p.x = numbers(bytes, values, p.nodes() * p.features);
  p.template_x = numbers(bytes, values, p.templates * p.template_nodes * p.features);
  const bool directed = bytes.one_in(2);
  const int kind = bytes.below(4);
  p.kind = kind == 0 ? StructureKind::none : kind == 1 ? StructureKind::dense : StructureKind::sparse;
  if (p.kind == StructureKind::sparse) add_edges(bytes, p, directed);
  if (p.kind == StructureKind::dense) add_dense(bytes, p, directed);
  if (p.kind != StructureKind::none)
    p.template_structure = numbers(bytes, values, p.templates * p.template_nodes * p.template_nodes);
  if (p.kind == StructureKind::none && bytes.one_in(2)) {
    p.cost = numbers(bytes, values, p.nodes() * p.templates * p.template_nodes);
    p.alpha.assign(p.templates, 0.0);
  }
  if (bytes.one_in(3)) {
    p.start = numbers(bytes, Values::continuous, p.nodes() * p.templates * p.template_nodes);
    for (double& v : p.start) v = std::abs(v);
  }
  p.options.max_iter = bytes.one_in(4) ? 1 + bytes.below(4) : 300;
  p.options.tol = bytes.one_in(4) ? 0.0 : 1e-9;
  p.options.starts = 1 + (bytes.one_in(3) ? bytes.below(16) : 0);
  const int kinds = 1 + bytes.below(7);
  p.options.kinds = kinds == kPerturbed && p.start.empty() ? kPerturbed | kUniform : kinds;
  p.threads = 1 + bytes.below(3);
  return p;
}

void spoil(RandomProblem& p, Bytes& bytes) {
  const double bad[] = {std::nan(""), std::numeric_limits<double>::infinity(), -1.0, 2.0, 0.0, 1e308};
  std::vector<double>* const arrays[] = {&p.x,     &p.weights,            &p.edge_weight, &p.dense,
                                         &p.alpha, &p.template_structure, &p.template_x,  &p.template_weights};
  for (int i = 1 + bytes.below(3); i > 0; --i) {
    std::vector<double>& array = *arrays[bytes.below(8)];
    if (!array.empty()) array[bytes.below(int(array.size()))] = bad[bytes.below(6)];
  }
  if (!p.edge_index.empty() && bytes.one_in(2))
    p.edge_index[bytes.below(int(p.edge_index.size()))] = bytes.below(200) - 20;
  if (bytes.one_in(2)) p.batch[bytes.below(int(p.batch.size()))] = bytes.below(12) - 2;
}

BatchInput RandomProblem::graphs_input() const {
  const auto maybe = [](const std::vector<double>& v) { return v.empty() ? nullptr : v.data(); };
  return {graphs(),
          nodes(),
          features,
          ptr.data(),
          x.data(),
          weights.data(),
          kind,
          int64_t(edge_index.size() / 2),
          edge_index.data(),
          maybe(edge_weight),
          maybe(dense),
          maybe(cost)};
}

TemplatesInput RandomProblem::templates_input() const {
  const double* structure = template_structure.empty() ? nullptr : template_structure.data();
  return {templates, template_nodes, features, structure, template_x.data(), template_weights.data(), alpha.data()};
}

Solved::Solved(const RandomProblem& p)
    : distance(p.graphs() * p.templates),
      structure_cost(distance),
      feature_cost(distance),
      gap(distance),
      row_potential(p.nodes() * p.templates),
      col_potential(p.graphs() * p.templates * p.template_nodes),
      iterations(distance.size()),
      status(distance.size()),
      plans(distance.size()) {}

SolveOutput Solved::output() {
  return {distance.data(), structure_cost.data(), feature_cost.data(),  gap.data(),          iterations.data(),
          status.data(),   plans.data(),          row_potential.data(), col_potential.data()};
}

SolvedPairs Solved::pairs() const {
  return {structure_cost.data(), feature_cost.data(), row_potential.data(), col_potential.data(), plans.data(), nullptr};
}

std::vector<double> Solved::dense_plans(const RandomProblem& p) const {
  std::vector<double> dense(p.nodes() * p.templates * p.template_nodes);
  for (int64_t b = 0; b < p.graphs(); ++b)
    for (int64_t k = 0; k < p.templates; ++k) {
      const SparsePlan& plan = plans[b * p.templates + k];
      for (int e = 0; e < plan.count(); ++e)
        dense[((p.ptr[b] + plan.row[e]) * p.templates + k) * p.template_nodes + plan.col[e]] = plan.mass[e];
    }
  return dense;
}

Gradients::Gradients(const RandomProblem& p)
    : x(p.x.size()),
      weights(p.weights.size()),
      structure(p.kind == StructureKind::dense ? p.dense.size() : p.edge_index.size() / 2),
      template_structure(p.template_structure.size()),
      template_x(p.template_x.size()),
      template_weights(p.template_weights.size()),
      alpha(p.alpha.size()) {}

GradientOutput Gradients::output() {
  return {x.data(),
          weights.data(),
          structure.empty() ? nullptr : structure.data(),
          template_structure.empty() ? nullptr : template_structure.data(),
          template_x.data(),
          template_weights.data(),
          alpha.data()};
}

}  // namespace tfgw::test

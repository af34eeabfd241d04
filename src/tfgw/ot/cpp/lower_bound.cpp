#include "lower_bound.hpp"

#include <algorithm>
#include <utility>

namespace tfgw {
namespace {

using Atoms = std::vector<std::pair<double, double>>;  // value and mass

void append(Profiles& profiles, Atoms& atoms) {
  if (profiles.ptr.empty()) profiles.ptr.push_back(0);
  std::sort(atoms.begin(), atoms.end());
  for (const auto& [value, mass] : atoms) {
    if (int64_t(profiles.value.size()) > profiles.ptr.back() && profiles.value.back() == value) {
      profiles.mass.back() += mass;
    } else {
      profiles.value.push_back(value);
      profiles.mass.push_back(mass);
    }
  }
  profiles.ptr.push_back(int64_t(profiles.value.size()));
}

// Entries that are not stored are zeros and have the rest of the mass.
Profiles profiles_of(const std::vector<std::vector<std::pair<int, double>>>& entries, const std::vector<double>& h) {
  Profiles out;
  for (const auto& row : entries) {
    Atoms atoms;
    std::vector<char> stored(h.size(), 0);
    for (const auto& [j, c] : row) atoms.emplace_back(c, h[j]), stored[j] = 1;
    double rest = 0;
    for (size_t j = 0; j < h.size(); ++j)
      if (!stored[j]) rest += h[j];
    if (rest > 0) atoms.emplace_back(0.0, rest);
    append(out, atoms);
  }
  return out;
}

// Optimal transport on a line: both in ascending order. Mass left over by rounding costs nothing, which can only lower
// the bound.
double line_cost(const Profiles& a, int i, const Profiles& b, int k) {
  int64_t p = a.ptr[i], q = b.ptr[k];
  double left = a.mass[p], right = b.mass[q], cost = 0;
  while (true) {
    const double moved = std::min(left, right), difference = a.value[p] - b.value[q];
    cost += moved * difference * difference;
    left -= moved;
    right -= moved;
    if (left <= 0) {
      if (++p == a.ptr[i + 1]) return cost;
      left = a.mass[p];
    }
    if (right <= 0) {
      if (++q == b.ptr[k + 1]) return cost;
      right = b.mass[q];
    }
  }
}

}  // namespace

StructureProfiles structure_profiles(const Graph& graph) {
  std::vector<std::vector<std::pair<int, double>>> rows(graph.n), columns(graph.n);
  graph.for_each_entry([&](int i, int j, double c) {
    rows[i].emplace_back(j, c);
    columns[j].emplace_back(i, c);
  });
  StructureProfiles out;
  out.rows = profiles_of(rows, graph.h);
  if (!graph.symmetric) out.columns = profiles_of(columns, graph.h);
  return out;
}

StructureProfiles structure_profiles(const Template& t) {
  if (t.C.empty()) return {};
  std::vector<std::vector<std::pair<int, double>>> rows(t.m), columns(t.m);
  for (int a = 0; a < t.m; ++a)
    for (int b = 0; b < t.m; ++b) {
      rows[a].emplace_back(b, t.C[size_t(a) * t.ld + b]);
      columns[a].emplace_back(b, t.Ct[size_t(a) * t.ld + b]);
    }
  StructureProfiles out;
  out.rows = profiles_of(rows, t.h);
  if (t.C != t.Ct) out.columns = profiles_of(columns, t.h);
  return out;
}

Profiles marginal_profiles(const Graph& graph, int64_t features) {
  Profiles out;
  Atoms atoms;
  for (int64_t c = 0; c < features; ++c) {
    atoms.clear();
    for (int i = 0; i < graph.n; ++i) atoms.emplace_back(graph.x[i * features + c], graph.h[i]);
    append(out, atoms);
  }
  atoms.clear();
  double rest = 1;
  graph.for_each_entry([&](int i, int j, double c) {
    atoms.emplace_back(c, graph.h[i] * graph.h[j]);
    rest -= atoms.back().second;
  });
  if (graph.kind != StructureKind::dense && rest > 0) atoms.emplace_back(0.0, rest);
  append(out, atoms);
  return out;
}

double marginal_bound(const Profiles& a, const Profiles& b, double alpha) {
  const int features = int(a.ptr.size()) - 2;
  double feature_cost = 0;
  for (int c = 0; c < features; ++c) feature_cost += line_cost(a, c, b, c);
  return (1 - alpha) * feature_cost + alpha * line_cost(a, features, b, features);
}

void add_profile_costs(const StructureProfiles& graph, const StructureProfiles& tmpl, int n, int m, int ld,
                       double scale, Matrix& cost) {
  const bool directed = !graph.columns.ptr.empty() || !tmpl.columns.ptr.empty();
  const Profiles& graph_columns = graph.columns.ptr.empty() ? graph.rows : graph.columns;
  const Profiles& template_columns = tmpl.columns.ptr.empty() ? tmpl.rows : tmpl.columns;
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < m; ++k) {
      double line = line_cost(graph.rows, i, tmpl.rows, k);
      if (directed) line = 0.5 * (line + line_cost(graph_columns, i, template_columns, k));
      cost[size_t(i) * ld + k] += scale * line;
    }
}

}  // namespace tfgw

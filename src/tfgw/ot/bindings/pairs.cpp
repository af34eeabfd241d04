// Pairs of a ragged set of graphs on the CPU. All inputs are NumPy arrays.
#include "pairs.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <utility>
#include <vector>

#include "graph_set.hpp"
#include "python_signals.hpp"
#include "validate.hpp"

namespace nb = nanobind;

namespace tfgw {
namespace {

using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Longs = nb::ndarray<const int64_t, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Pairs = nb::ndarray<const int64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

// The graphs, and the arrays that they point into.
class GivenGraphs {
 public:
  GivenGraphs(Longs ptr, Doubles x, Doubles node_weights, std::optional<Longs> edge_index,
              std::optional<Doubles> edge_weight, std::optional<Doubles> structure)
      : ptr_(ptr), x_(x), node_weights_(node_weights), edge_index_(edge_index), edge_weight_(edge_weight),
        structure_(structure) {}

  BatchInput input() const {
    BatchInput in{};
    in.graphs = int64_t(ptr_.shape(0)) - 1;
    in.nodes = int64_t(x_.shape(0)), in.features = int64_t(x_.shape(1));
    in.ptr = ptr_.data(), in.x = x_.data(), in.weights = node_weights_.data();
    in.kind = edge_index_ ? StructureKind::sparse : structure_ ? StructureKind::dense : StructureKind::none;
    if (edge_index_) in.edges = int64_t(edge_index_->shape(1)), in.edge_index = edge_index_->data();
    if (edge_weight_) in.edge_weight = edge_weight_->data();
    if (structure_) in.dense = structure_->data();
    return in;
  }

 private:
  Longs ptr_;
  Doubles x_, node_weights_;
  std::optional<Longs> edge_index_;
  std::optional<Doubles> edge_weight_, structure_;
};

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> as_array(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

// One array per field; those of the plans have one entry per entry of a plan, pair after pair.
nb::dict as_arrays(const std::vector<PairDetails>& found) {
  std::vector<double> distances, gaps, spreads, mass;
  std::vector<int32_t> status, local_minima, counts, rows, columns;
  for (const PairDetails& one : found) {
    distances.push_back(one.result.distance);
    gaps.push_back(one.result.gap);
    spreads.push_back(one.result.spread);
    status.push_back(int32_t(one.result.status));
    local_minima.push_back(one.is_local_minimum);
    counts.push_back(one.plan.count());
    rows.insert(rows.end(), one.plan.row.begin(), one.plan.row.end());
    columns.insert(columns.end(), one.plan.col.begin(), one.plan.col.end());
    mass.insert(mass.end(), one.plan.mass.begin(), one.plan.mass.end());
  }
  nb::dict arrays;
  arrays["distances"] = as_array(std::move(distances));
  arrays["gaps"] = as_array(std::move(gaps));
  arrays["spreads"] = as_array(std::move(spreads));
  arrays["status"] = as_array(std::move(status));
  arrays["local_minima"] = as_array(std::move(local_minima));
  arrays["plan_counts"] = as_array(std::move(counts));
  arrays["plan_rows"] = as_array(std::move(rows));
  arrays["plan_columns"] = as_array(std::move(columns));
  arrays["plan_mass"] = as_array(std::move(mass));
  return arrays;
}

class BoundGraphSet {
 public:
  BoundGraphSet(const GivenGraphs& given, double alpha, int node_cost, int threads)
      : given_(given), threads_(threads), set_(given_.input(), alpha, NodeCost(node_cost), threads) {}

  void distances(Pairs pairs, int max_iter, double tol, int n_starts, int start_kinds, Values out) {
    const SolveOptions options = solve_options(max_iter, tol, n_starts, start_kinds);
    run(pairs, [&](const auto& list, Interrupt& interrupt) {
      return set_.distances(list, options, threads_, interrupt, out.data());
    });
  }
  nb::dict details(Pairs pairs, int max_iter, double tol, int n_starts, int start_kinds) {
    const SolveOptions options = solve_options(max_iter, tol, n_starts, start_kinds);
    std::vector<PairDetails> found(pairs.shape(0));
    run(pairs, [&](const auto& list, Interrupt& interrupt) {
      return set_.details(list, options, threads_, interrupt, found.data());
    });
    return as_arrays(found);
  }
  void lower_bounds(Pairs pairs, Values out) {
    run(pairs, [&](const auto& list, Interrupt& interrupt) {
      return set_.lower_bounds(list, threads_, interrupt, out.data());
    });
  }
  void marginal_bounds(Pairs pairs, Values out) {
    run(pairs, [&](const auto& list, Interrupt& interrupt) {
      return set_.marginal_bounds(list, threads_, interrupt, out.data());
    });
  }

 private:
  static SolveOptions solve_options(int max_iter, double tol, int n_starts, int start_kinds) {
    SolveOptions options;
    options.max_iter = max_iter, options.tol = tol, options.starts = n_starts, options.kinds = start_kinds;
    return options;
  }

  template <class Compute>
  static void run(const Pairs& pairs, Compute compute) {
    PythonSignals signals;
    bool finished;
    {
      nb::gil_scoped_release release;
      std::vector<GraphPair> list(pairs.shape(0));
      for (size_t p = 0; p < list.size(); ++p) list[p] = {pairs.data()[2 * p], pairs.data()[2 * p + 1]};
      finished = compute(list, signals);
    }
    if (!finished) throw nb::python_error();
  }

  const GivenGraphs given_;
  const int threads_;
  GraphSet set_;
};

}  // namespace

void bind_pairs(nb::module_& module) {
  nb::class_<GivenGraphs>(module, "GivenGraphs")
      .def(nb::init<Longs, Doubles, Doubles, std::optional<Longs>, std::optional<Doubles>, std::optional<Doubles>>(),
           nb::kw_only(), nb::arg("ptr"), nb::arg("x"), nb::arg("node_weights"), nb::arg("edge_index").none(),
           nb::arg("edge_weight").none(), nb::arg("structure").none())
      .def("validate", [](const GivenGraphs& given, double tolerance) { validate(given.input(), tolerance); },
           nb::arg("weight_tolerance"));
  nb::class_<BoundGraphSet>(module, "GraphSet")
      .def(nb::init<const GivenGraphs&, double, int, int>(), nb::arg("graphs"), nb::kw_only(), nb::arg("alpha"),
           nb::arg("node_cost"), nb::arg("threads"))
      .def("distances", &BoundGraphSet::distances, nb::arg("pairs"), nb::kw_only(), nb::arg("max_iter"), nb::arg("tol"),
           nb::arg("n_starts"), nb::arg("start_kinds"), nb::arg("out"))
      .def("details", &BoundGraphSet::details, nb::arg("pairs"), nb::kw_only(), nb::arg("max_iter"), nb::arg("tol"),
           nb::arg("n_starts"), nb::arg("start_kinds"))
      .def("lower_bounds", &BoundGraphSet::lower_bounds, nb::arg("pairs"), nb::kw_only(), nb::arg("out"))
      .def("marginal_bounds", &BoundGraphSet::marginal_bounds, nb::arg("pairs"), nb::kw_only(), nb::arg("out"));
}

}  // namespace tfgw

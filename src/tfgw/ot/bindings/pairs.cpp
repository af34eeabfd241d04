// Pairs of a ragged set of graphs on the CPU. All inputs are NumPy arrays.
#include "pairs.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
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

class BoundGraphSet {
 public:
  BoundGraphSet(const GivenGraphs& given, double alpha, int node_cost, int threads)
      : given_(given), threads_(threads), set_(given_.input(), alpha, NodeCost(node_cost), threads) {}

  void distances(Pairs pairs, int max_iter, double tol, int n_starts, int start_kinds, Values out) {
    SolveOptions options;
    options.max_iter = max_iter, options.tol = tol, options.starts = n_starts, options.kinds = start_kinds;
    run(pairs, [&](const auto& list, Interrupt& interrupt) {
      return set_.distances(list, options, threads_, interrupt, out.data());
    });
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
      .def("lower_bounds", &BoundGraphSet::lower_bounds, nb::arg("pairs"), nb::kw_only(), nb::arg("out"))
      .def("marginal_bounds", &BoundGraphSet::marginal_bounds, nb::arg("pairs"), nb::kw_only(), nb::arg("out"));
}

}  // namespace tfgw

// Python's view of the core: checked arrays in, preallocated arrays out. Shapes and dtypes are op.py's business.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <chrono>
#include <optional>
#include <thread>

#include "batch.hpp"
#include "canonical.hpp"
#include "host/bindings.hpp"
#include "validate.hpp"

namespace nb = nanobind;

namespace tfgw {
namespace {

using Doubles = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using Longs = nb::ndarray<int64_t, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<int32_t, nb::c_contig, nb::device::cpu>;
using MaybeDoubles = std::optional<Doubles>;
using MaybeLongs = std::optional<Longs>;

double* data(const MaybeDoubles& a) { return a ? a->data() : nullptr; }

// Asks Python for pending signals (Ctrl-C), now and then and only on the thread that called in.
class PythonSignals : public Interrupt {
 protected:
  bool requested() override {
    if (std::this_thread::get_id() != caller_) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return false;
    next_ = now + std::chrono::milliseconds(50);
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
  }

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now();
};

// A problem as Python hands it over; keeps the arrays alive.
struct Problem {
  Longs ptr;
  Doubles x, weights;
  MaybeLongs edge_index;
  MaybeDoubles edge_weight, dense, cost, template_structure;
  Doubles template_x, template_weights, alpha;

  BatchInput batch() const {
    BatchInput in{};
    in.graphs = int64_t(ptr.shape(0)) - 1;
    in.nodes = int64_t(x.shape(0));
    in.features = int64_t(x.shape(1));
    in.ptr = ptr.data();
    in.x = x.data();
    in.weights = weights.data();
    in.kind = edge_index ? StructureKind::sparse : dense ? StructureKind::dense : StructureKind::none;
    in.edges = edge_index ? int64_t(edge_index->shape(1)) : 0;
    in.edge_index = edge_index ? edge_index->data() : nullptr;
    in.edge_weight = data(edge_weight);
    in.dense = data(dense);
    in.cost = data(cost);
    return in;
  }
  TemplatesInput templates() const {
    return {int64_t(template_x.shape(0)), int64_t(template_x.shape(1)), int64_t(template_x.shape(2)),
            data(template_structure),     template_x.data(),            template_weights.data(),
            alpha.data()};
  }
};

void offsets(const Longs& batch, Longs& out) {
  const std::vector<int64_t> ptr =
      graph_offsets(batch.data(), int64_t(batch.shape(0)), int64_t(out.shape(0)) - 1);
  std::copy(ptr.begin(), ptr.end(), out.data());
}

void check(const Problem& problem, double weight_tolerance) {
  validate(problem.templates(), weight_tolerance);
  validate(problem.batch(), weight_tolerance);
}

void solve(const Problem& problem, MaybeDoubles start, int max_iter, double tol, int starts, int start_kinds,
           int threads, Doubles distance, Doubles structure_cost, Doubles feature_cost, Doubles gap,
           Ints iterations, Ints status, MaybeDoubles plan, MaybeDoubles row_potential, MaybeDoubles col_potential, MaybeDoubles spread,
           MaybeDoubles lower_bound, std::optional<Ints> local_minimum) {
  SolveOptions options;
  options.max_iter = max_iter;
  options.tol = tol;
  options.starts = starts;
  options.kinds = start_kinds;
  const SolveOutput out{distance.data(), structure_cost.data(), feature_cost.data(),
                        gap.data(),      iterations.data(),     status.data(),
                        data(plan),      data(row_potential),   data(col_potential),
                        data(spread),    data(lower_bound),     local_minimum ? local_minimum->data() : nullptr};
  PythonSignals signals;
  bool finished;
  {
    nb::gil_scoped_release release;
    finished = solve_batch(problem.batch(), problem.templates(), options, data(start), threads, signals, out);
  }
  if (!finished) throw nb::python_error();
}

void backward(const Problem& problem, Doubles structure_cost, Doubles feature_cost, Doubles plan,
              Doubles row_potential, Doubles col_potential, Doubles grad_distance, int threads, MaybeDoubles grad_x,
              MaybeDoubles grad_weights, MaybeDoubles grad_structure, MaybeDoubles grad_template_structure,
              MaybeDoubles grad_template_x, MaybeDoubles grad_template_weights, MaybeDoubles grad_alpha) {
  const SolvedPairs solved{structure_cost.data(), feature_cost.data(), plan.data(), row_potential.data(),
                           col_potential.data()};
  const GradientOutput out{data(grad_x),
                           data(grad_weights),
                           data(grad_structure),
                           data(grad_template_structure),
                           data(grad_template_x),
                           data(grad_template_weights),
                           data(grad_alpha)};
  nb::gil_scoped_release release;
  backward_batch(problem.batch(), problem.templates(), solved, grad_distance.data(), threads, out);
}

// Canonical orders of all graphs of a batch. `node_rows`: what describes each node, (nodes, …). `edge_rows`: likewise
// for edges. Either of edges and dense blocks may be missing.
void canonical_orders(Longs ptr, Doubles node_rows, MaybeLongs edge_index, MaybeDoubles edge_rows, MaybeDoubles dense,
                      int64_t effort, Longs order, Ints exact) {
  const OrderInput in{int64_t(ptr.shape(0)) - 1,
                      ptr.data(),
                      node_rows.data(),
                      int64_t(node_rows.shape(1)),
                      edge_index ? int64_t(edge_index->shape(1)) : 0,
                      edge_index ? edge_index->data() : nullptr,
                      data(edge_rows),
                      edge_rows ? int64_t(edge_rows->shape(1)) : 0,
                      data(dense)};
  nb::gil_scoped_release release;
  canonical_orders(in, effort, order.data(), exact.data());
}

}  // namespace
}  // namespace tfgw

NB_MODULE(_core, module) {
  using namespace tfgw;
  nb::class_<Problem>(module, "Problem")
      .def(
          "__init__",
          [](Problem* self, Longs ptr, Doubles x, Doubles weights, MaybeLongs edge_index, MaybeDoubles edge_weight,
             MaybeDoubles dense, MaybeDoubles cost, MaybeDoubles template_structure, Doubles template_x,
             Doubles template_weights, Doubles alpha) {
            new (self) Problem{ptr,  x,          weights,           edge_index,         edge_weight,
                               dense, cost,      template_structure, template_x,        template_weights,
                               alpha};
          },
          nb::kw_only(), nb::arg("ptr"), nb::arg("x"), nb::arg("weights"), nb::arg("edge_index").none(),
          nb::arg("edge_weight").none(), nb::arg("dense").none(), nb::arg("cost").none(),
          nb::arg("template_structure").none(), nb::arg("template_x"), nb::arg("template_weights"),
          nb::arg("alpha"))
      .def("check", &check, nb::arg("weight_tolerance"));
  module.def("canonical_orders",
             nb::overload_cast<Longs, Doubles, MaybeLongs, MaybeDoubles, MaybeDoubles, int64_t, Longs, Ints>(
                 &canonical_orders),
             nb::kw_only(), nb::arg("ptr"), nb::arg("node_rows"), nb::arg("edge_index").none(),
             nb::arg("edge_rows").none(), nb::arg("dense").none(), nb::arg("effort"), nb::arg("order"),
             nb::arg("exact"));
  module.def("offsets", &offsets, nb::arg("batch"), nb::arg("out"));
  module.def("solve", &solve, nb::arg("problem"), nb::kw_only(), nb::arg("start").none(), nb::arg("max_iter"),
             nb::arg("tol"), nb::arg("starts"), nb::arg("start_kinds"), nb::arg("threads"), nb::arg("distance"), nb::arg("structure_cost"),
             nb::arg("feature_cost"), nb::arg("gap"), nb::arg("iterations"), nb::arg("status"),
             nb::arg("plan").none(), nb::arg("row_potential").none(), nb::arg("col_potential").none(),
             nb::arg("spread").none() = nb::none(), nb::arg("lower_bound").none() = nb::none(),
             nb::arg("local_minimum").none() = nb::none());
  module.def("backward", &backward, nb::arg("problem"), nb::kw_only(), nb::arg("structure_cost"),
             nb::arg("feature_cost"), nb::arg("plan"), nb::arg("row_potential"), nb::arg("col_potential"),
             nb::arg("grad_distance"), nb::arg("threads"), nb::arg("grad_x").none(), nb::arg("grad_weights").none(),
             nb::arg("grad_structure").none(), nb::arg("grad_template_structure").none(),
             nb::arg("grad_template_x").none(), nb::arg("grad_template_weights").none(),
             nb::arg("grad_alpha").none());
  gpu::bind(module);
}

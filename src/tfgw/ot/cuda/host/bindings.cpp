// Python bindings of the host code.
#include "bindings.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "gpu.hpp"
#include "start_rules.cuh"

namespace tfgw::gpu {
namespace {

template <class Function>
void find(Function*& function, const nb::dict& addresses, const char* name) {
  function = reinterpret_cast<Function*>(nb::cast<uintptr_t>(addresses[name]));
}

Driver driver_of(const nb::dict& addresses) {
  Driver driver{};
  find(driver.launch_kernel, addresses, "cuLaunchKernel");
  find(driver.event_create, addresses, "cuEventCreate");
  find(driver.event_record, addresses, "cuEventRecord");
  find(driver.event_synchronize, addresses, "cuEventSynchronize");
  find(driver.stream_is_capturing, addresses, "cuStreamIsCapturing");
  find(driver.host_alloc, addresses, "cuMemHostAlloc");
  find(driver.get_error_name, addresses, "cuGetErrorName");
  return driver;
}

// The callables held by a GPU may refer back to it, so Python's garbage collector must know about them.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const nb::object* reference : nb::inst_ptr<Gpu>(self)->references()) Py_VISIT(reference->ptr());
  return 0;
}
int clear(PyObject* self) {
  for (nb::object* reference : nb::inst_ptr<Gpu>(self)->references()) reference->reset();
  return 0;
}
PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};

Problem counts(i64 graphs, i64 nodes, i64 features, i64 edges, i64 templates, i64 columns) {
  Problem p{};
  p.graphs = graphs, p.nodes = nodes, p.features = features, p.edges = edges;
  p.templates = templates, p.columns = columns, p.padded = size_class(columns).value();
  return p;
}

}  // namespace

void bind(nb::module_& module) {
  nb::class_<Gpu>(module, "Gpu", nb::type_slots(slots))
      .def(
          "__init__",
          [](Gpu* self, const nb::dict& driver, i64 processors, i64 shared, i64 memory, int generation,
             nb::object kernel, nb::object stream) {
            new (self) Gpu(driver_of(driver), {processors, shared, memory, generation}, std::move(kernel),
                           std::move(stream));
          },
          nb::kw_only(), nb::arg("driver"), nb::arg("processors"), nb::arg("shared"), nb::arg("memory"),
          nb::arg("generation"), nb::arg("kernel"), nb::arg("stream"))
      .def(
          "unsupported_reason",
          [](const Gpu& self, nb::handle size) { return self.unsupported_reason(ProblemSize(size)); }, nb::arg("size"))
      .def("solve", &Gpu::solve,
           nb::sig("def solve(self, problem: tuple, weight_tolerance: float, wanted: int) -> tuple | None"),
           nb::arg("problem"), nb::arg("weight_tolerance"), nb::arg("wanted"))
      .def("backward", &Gpu::backward, nb::arg("problem"), nb::arg("grad"), nb::arg("needs"), nb::kw_only(),
           nb::arg("prepared"), nb::arg("pairs").none(), nb::arg("plans").none())
      .def("backward_of_solved", &Gpu::backward_of_solved, nb::arg("problem"), nb::arg("grad"), nb::arg("needs"),
           nb::arg("solved"), nb::arg("weight_tolerance"));
  module.attr("GPU_SIZE_CLASSES") = nb::tuple(nb::cast(kSizeClasses));
  module.attr("GPU_LARGEST_FOR_STARTS") = kLargestForStarts;
  module.attr("GPU_LARGEST_FOR_SMALL_GRAPHS") = kLargestForSmallGraphs;
  module.attr("GPU_OLDEST_GENERATION") = kOldestGeneration;
  module.attr("GPU_RESERVED_BYTES") = kReservedBytes;
  // For the tests.
  module.def("gpu_workspace_size", &workspace_size, nb::arg("rows"), nb::arg("padded"), nb::arg("several") = false);
  module.def("gpu_size_class", &size_class, nb::arg("columns"));
  module.def(
      "gpu_solve_shape",
      [](i64 shared, i64 graphs, i64 nodes, i64 edges, i64 columns, i64 processors, i64 starts) {
        const SolveShape shape = solve_shape(counts(graphs, nodes, 0, edges, 1, columns), shared, processors,
                                             {starts, kUniform, false});
        return std::make_tuple(shape.per_processor, shape.shared, shape.small_graphs, shape.start_shared,
                               shape.smallest_graphs, shape.small_shared);
      },
      nb::kw_only(), nb::arg("shared"), nb::arg("graphs"), nb::arg("nodes"), nb::arg("edges"), nb::arg("columns"),
      nb::arg("processors") = 1000, nb::arg("starts") = 1);
  module.def(
      "gpu_prepared",
      [](i64 graphs, i64 nodes, i64 features, i64 edges, i64 templates, i64 columns) {
        Problem p = counts(graphs, nodes, features, edges, templates, columns);
        place_prepared(p, 0);
        nb::dict found;
        each_prepared(p, [&](const char* name, auto*& member, i64 entries) {
          found[name] = nb::make_tuple(reinterpret_cast<i64>(member), entries * i64(sizeof(*member)));
        });
        return found;
      },
      nb::kw_only(), nb::arg("graphs"), nb::arg("nodes"), nb::arg("features"), nb::arg("edges"), nb::arg("templates"),
      nb::arg("columns"), "Where each prepared member begins in their memory, and its bytes.");
}

}  // namespace tfgw::gpu

// The extension: canonical orders, and the solvers on the CPU (cpu.cpp, pairs.cpp) and on a GPU
// (../cuda/host/bindings.cpp), and layers of networks (layers.cpp).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>

#include "canonical.hpp"
#include "cpu.hpp"
#include "host/bindings.hpp"
#include "layers.hpp"
#include "pairs.hpp"
#include "python_signals.hpp"
#include "start_rules.cuh"
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

// First node of each graph.
void offsets(const Longs& batch, Longs& out) {
  const std::vector<int64_t> ptr = graph_offsets(batch.data(), int64_t(batch.shape(0)), int64_t(out.shape(0)) - 1);
  std::copy(ptr.begin(), ptr.end(), out.data());
}

// Canonical orders of all graphs of a batch. `node_rows`: attributes of each node, (nodes, …). `edge_rows`: likewise
// for edges. Either edges or dense blocks may be missing.
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
  PythonSignals signals;
  bool finished;
  {
    nb::gil_scoped_release release;
    finished = canonical_orders(in, effort, signals, order.data(), exact.data());
  }
  if (!finished) throw nb::python_error();
}

}  // namespace
}  // namespace tfgw

NB_MODULE(_core, module) {
  using namespace tfgw;
  nb::set_leak_warnings(false);  // PyTorch's autograd graph may keep solved problems until the interpreter exits
  module.def("canonical_orders",
             nb::overload_cast<Longs, Doubles, MaybeLongs, MaybeDoubles, MaybeDoubles, int64_t, Longs, Ints>(
                 &canonical_orders),
             nb::kw_only(), nb::arg("ptr"), nb::arg("node_rows"), nb::arg("edge_index").none(),
             nb::arg("edge_rows").none(), nb::arg("dense").none(), nb::arg("effort"), nb::arg("order"),
             nb::arg("exact"));
  module.def("offsets", &offsets, nb::arg("batch"), nb::arg("out"));
  module.attr("UNIFORM") = int(kUniform);
  module.attr("STARTS_PER_ROUND") = kStartsPerRound;
  module.attr("FRESH_STARTS") = kFreshStarts;
  module.attr("KEPT_MINIMA") = kKeptMinima;
  bind_cpu(module);
  bind_pairs(module);
  bind_layers(module);
  gpu::bind(module);
}

// A GPU as the host sees it: problems from Python are described to the kernels, which are launched one after the other.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "driver.hpp"
#include "given_problem.hpp"
#include "layout.hpp"
#include "torch.hpp"

namespace tfgw::gpu {

enum Kernel {
  kIndex, kPrepare, kStart, kStartMany, kSolve, kSolveSmall, kBackwardNodes, kBackwardEdges, kBackwardTemplates, kFold,
  kKernels
};

struct Properties {
  i64 processors;
  i64 shared;      // bytes of shared memory per multiprocessor
  i64 memory;      // bytes of the device
  int generation;  // the first number of its compute capability
};

// A word of host memory that the kernels set to 1 where input is invalid. The event behind the kernels that check lets
// the host read it while the GPU is already solving.
struct Check {
  volatile int* word = nullptr;
  Handle event = nullptr;
  bool pending = false;  // whether the event may still be to come
};

// A problem as the kernels take it.
struct Described {
  Described(const Torch& torch, const Fields& fields) : given(torch, fields), places(fields.entry_places()) {}

  GivenTensors given;       // what the structs point to, like the next one
  nb::object places;
  Problem problem{};
  SharedEntries entries{};  // of a layer's templates; without `where` if there are none
  nb::object prepared;  // memory that the kernels `index` and `prepare` fill, and all others read
  i64 prepared_size = 0, prepared_end = 0;  // bytes of it, and the address behind them
  nb::object device;
};

// What a solve is to leave behind, as results.py has it.
enum Wanted { kDistances, kPairs, kPlans, kGradients };

class Gpu {
 public:
  // `kernel(name, columns)` has the driver's handle of a kernel, `stream()` that of PyTorch's current stream.
  Gpu(const Driver& driver, const Properties& properties, nb::object kernel, nb::object stream)
      : driver_(driver), properties_(properties), kernel_(std::move(kernel)), stream_(std::move(stream)) {}

  // Why the kernels cannot solve a problem of so many graphs, nodes, templates and nodes of each template, perhaps with
  // plans to start from; none if they can.
  std::optional<std::string> unsupported_reason(i64 graphs, i64 nodes, i64 templates, i64 columns, bool start) const;

  // Solves all pairs: distances, and as far as wanted pairs and plans (results.py) with the prepared memory; None if the
  // input is invalid. While a CUDA graph is captured, nobody can look whether it is.
  nb::object solve(nb::tuple given, double weight_tolerance, Wanted wanted);

  // Gradients of what is differentiable and needed, for that of the distances. `solved` is pairs and plans, or nothing
  // if they are behind the prepared memory, or one by one what the operators return of them. `prepared` is the solve's;
  // None prepares again.
  nb::list backward(nb::tuple given, nb::handle grad, nb::tuple solved, nb::sequence needs, double weight_tolerance,
                    nb::object prepared);

  // Of what may refer to this object.
  std::array<nb::object*, 2> references() { return {&kernel_, &stream_}; }

 private:
  class Lease;

  Described describe(const Fields& fields) const;
  void place(Described& d, nb::object memory) const;  // the prepared memory
  void prepare(const Described& d, Handle stream);
  template <class... Structs>
  void launch(Kernel kernel, i64 padded, i64 blocks, i64 shared, Handle stream, const Structs&... structs);
  Handle handle(Kernel kernel, i64 padded);
  Handle current_stream() const;

  const Driver driver_;
  const Properties properties_;
  const Torch torch_;
  nb::object kernel_, stream_;
  std::array<std::array<std::atomic<Handle>, kKernels>, 5> handles_{};  // by padded / 32; null until used
  std::vector<Check> checks_;  // that nobody uses
};

}  // namespace tfgw::gpu

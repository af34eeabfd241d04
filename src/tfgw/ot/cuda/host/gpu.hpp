// A GPU as seen by the host: describes problems from Python to the kernels and launches these in sequence.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "driver.hpp"
#include "problem_view.hpp"
#include "layout.hpp"
#include "torch.hpp"

namespace tfgw::gpu {

enum Kernel {
  kIndex, kPrepare, kStart, kStartMany, kSolve, kSolveSmall, kStartsProduct, kStartsPin, kStartsWalk, kStartsBegin, kStarts,
  kStartsSmall, kStartsSpread, kBackwardNodes, kBackwardEdges, kBackwardTemplates, kFold, kKernels
};

struct Properties {
  i64 processors;
  i64 shared;      // bytes of shared memory per multiprocessor
  i64 memory;      // bytes of the device
  int generation;  // major version of the compute capability
};

// `ProblemSize` of problem.py.
struct ProblemSize {
  explicit ProblemSize(nb::handle given);

  i64 graphs, nodes, templates, columns;
  bool start;         // whether there are plans to start from
  i64 starts, kinds;  // how many starts, and of which kinds
};

// A word of host memory that the kernels set to 1 if the input is invalid. The event recorded after the checking
// kernels lets the host read it while the GPU is already solving.
struct Check {
  volatile int* word = nullptr;
  Handle event = nullptr;
  bool pending = false;  // whether the event may not have completed yet
};

// A problem in the format of the kernels.
struct KernelProblem {
  KernelProblem(const Torch& torch, const ProblemView& view) : given(torch, view), places(view.entry_places()) {}

  ProblemTensors given;  // owns what the structs point to, like `places`
  nb::object places;
  Problem problem{};
  SharedEntries entries{};  // of a layer's templates; `where` is null if there are none
  nb::object prepared;  // memory filled by the kernels `index` and `prepare` and read by all others
  i64 prepared_size = 0, prepared_end = 0;  // its size in bytes, and its end address
  nb::object device;
};

class Gpu {
 public:
  // `kernel(name, columns)` returns the driver's handle of a kernel, `stream()` that of PyTorch's current stream.
  Gpu(const Driver& driver, const Properties& properties, nb::object kernel, nb::object stream)
      : driver_(driver), properties_(properties), kernel_(std::move(kernel)), stream_(std::move(stream)) {}

  // Why the kernels cannot solve a problem of this size; no value if they can.
  std::optional<std::string> unsupported_reason(const ProblemSize& size) const;

  // Solves all pairs. Returns the fields of `HostSolution` (results.py), or None if the input is invalid. While a CUDA
  // graph is captured, validity cannot be checked. `wanted` combines flags `Wanted`.
  nb::object solve(nb::tuple given, double weight_tolerance, int wanted);

  // Gradients of the differentiable inputs that need one, from the gradient of the distances, `grad`, and from the
  // fields of the `HostSolution` of a solve that wanted gradients.
  nb::list backward(nb::tuple given, nb::handle grad, nb::sequence needs, nb::object prepared, nb::handle pairs,
                    nb::handle plans);

  // The same for a problem that was solved elsewhere; `solved` is a `SolvedPairs` of problem.py. Repeats the solve's
  // preparation.
  nb::list backward_of_solved(nb::tuple given, nb::handle grad, nb::sequence needs, nb::handle solved,
                              double weight_tolerance);

  // Members that may refer back to this object.
  std::array<nb::object*, 2> references() { return {&kernel_, &stream_}; }

 private:
  class Lease;
  struct Launches;

  KernelProblem describe(const ProblemView& view) const;
  void place(KernelProblem& d, nb::object memory) const;  // the prepared memory
  void prepare(const KernelProblem& d, Handle stream);
  nb::list gradients(const KernelProblem& d, const ProblemView& view, Gradients g, nb::handle grad,
                     nb::sequence needs);
  void launch_solve(const Problem& p, const Launches& launches, Handle stream);
  void launch_starts(const Problem& p, const Launches& launches, Handle stream);
  template <class... Structs>
  void launch(Kernel kernel, i64 padded, i64 blocks, i64 shared, Handle stream, const Structs&... structs);
  Handle handle(Kernel kernel, i64 padded);
  Handle current_stream() const;

  const Driver driver_;
  const Properties properties_;
  const Torch torch_;
  nb::object kernel_, stream_;
  using Handles = std::array<std::atomic<Handle>, kKernels>;
  std::array<Handles, kSizeClasses.back() / 32 + 1> handles_{};  // by padded / 32; null until used
  std::vector<Check> checks_;  // available for reuse
};

}  // namespace tfgw::gpu

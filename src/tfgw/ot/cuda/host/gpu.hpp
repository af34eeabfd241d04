// A GPU as the host sees it: problems from Python are described to the kernels, which are launched one after the other.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "driver.hpp"
#include "layout.hpp"
#include "torch.hpp"

namespace tfgw::gpu {

// Places in run.py's `Input`, which is the order of the operators' arguments.
enum Argument {
  kX, kBatch, kBatchSize, kNodeWeights, kEdgeIndex, kEdgeWeight, kStructure, kTemplateStructure, kTemplateFeatures,
  kTemplateWeights, kAlpha, kCost, kStartPlans, kShared, kPaddedNodes
};
constexpr int kPlaces = 3;  // in problem.py's `SharedEntries`

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
  Problem problem{};
  SharedEntries entries{};  // of a layer's templates; without `where` if there are none
  std::array<nb::object, kShared + 1> read;  // what the structs point to
  nb::object prepared;  // memory that the kernels `index` and `prepare` fill, and all others read
  i64 prepared_size = 0, prepared_end = 0;  // bytes of it, and the address behind them
  nb::object device;
};

// What a solve is to leave behind, as solved.py has it.
enum Wanted { kDistances, kPairs, kPlans, kGradients };

class Gpu {
 public:
  // `kernel(name, columns)` has the driver's handle of a kernel, `stream()` that of PyTorch's current stream.
  Gpu(const Driver& driver, const Properties& properties, nb::object kernel, nb::object stream)
      : driver_(driver), properties_(properties), kernel_(std::move(kernel)), stream_(std::move(stream)) {}

  // Why the kernels cannot solve a problem of so many graphs, of nodes, of templates and of nodes of each, perhaps with
  // plans to start from; none if they can.
  std::optional<std::string> reason_not_to(i64 graphs, i64 nodes, i64 templates, i64 columns, bool start) const;

  // Whether the checks of shapes, dtypes and devices (problem.py) would find nothing in a layer's problem, and it can be
  // solved. They say what is wrong, and take longer than the rest of the host's part; what is false here may be right, too.
  bool is_plain(nb::tuple given) const;

  // Solves all pairs: distances, and as far as wanted pairs and plans (solved.py) with the prepared memory; None if the
  // input is invalid. While a CUDA graph is captured, nobody can look whether it is.
  nb::object solve(nb::tuple given, double weight_tolerance, i64 max_iter, double tol, Wanted wanted);

  // Gradients of what is differentiable and needed, for that of the distances. `solved` is pairs and plans, or nothing
  // if they are behind the prepared memory, or one by one what the operators return of them. `prepared` is the solve's;
  // None prepares again.
  nb::list backward(nb::tuple given, nb::handle grad, nb::tuple solved, nb::sequence needs, double weight_tolerance,
                    nb::object prepared);

  // Of what may refer to this object.
  std::array<nb::object*, 2> references() { return {&kernel_, &stream_}; }

 private:
  class Lease;

  Described describe(nb::tuple given) const;
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

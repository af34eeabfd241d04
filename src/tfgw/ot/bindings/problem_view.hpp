// A `Problem` of tfgw/ot/problem.py as read by native code. The order of its fields is defined there only; here they
// are looked up by name, once.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <tuple>
#include <vector>

#include "torch.hpp"

namespace tfgw {

enum Field {
  // tensors
  kX, kBatch, kNodeWeights, kEdgeIndex, kEdgeWeight, kStructure, kTemplateStructure, kTemplateFeatures, kTemplateWeights,
  kAlpha, kCost, kInitialPlans,
  // numbers, and the positions of free entries in the templates' structures
  kBatchSize, kMaxIter, kTol, kNumStarts, kStartKinds, kPattern, kPaddedNodes, kConcurrentSolves,
  // bytes
  kSkipped,
  kFields
};
constexpr int kTensors = kBatchSize;

constexpr const char* kFieldNames[kFields] = {
    "x", "batch", "node_weights", "edge_index", "edge_weight", "structure", "template_structure", "template_features",
    "template_weights", "alpha", "cost", "initial_plans", "batch_size", "max_iter", "tol", "n_starts", "start_kinds",
    "pattern", "padded_nodes", "concurrent_solves", "skipped"};

// Flags for what to return in addition to distances; problem.py describes them.
enum Wanted { kResults = 1, kPlans = 2, kGradients = 4, kDiagnosis = 8 };

// The fields of one problem.
class ProblemView {
 public:
  explicit ProblemView(nb::handle problem) : problem_(problem) {}

  nb::handle operator[](Field field) const { return PyTuple_GetItem(problem_.ptr(), places()[field]); }
  template <class T>
  T as(Field field) const { return nb::cast<T>((*this)[field]); }

  // The two places of each free entry, `places` of `StructurePattern`; None if the structures are given as matrices.
  nb::object entry_places() const {
    const nb::handle pattern = (*this)[kPattern];
    return pattern.is_none() ? nb::none() : nb::borrow(PyTuple_GetItem(pattern.ptr(), place_of_places()));
  }

 private:
  static const std::array<int, kFields>& places();
  static int place_of_places();

  nb::handle problem_;
};

// The tensors of a problem in the format of native code, kept alive.
struct ProblemTensors {
  ProblemTensors(const Torch& torch, const ProblemView& view);

  i64 size(Field field, int dim) const { return info[field].shape[dim]; }
  bool has(Field field) const { return !read[field].is_none(); }

  std::array<nb::object, kTensors> read;
  std::array<Torch::TensorInfo, kTensors> info;
};

// `SolvedPairs` of problem.py in the format of native code, kept alive.
class SolvedTensors {
 public:
  SolvedTensors(const Torch& torch, nb::handle solved);

  const double *structure_costs, *feature_costs, *plans, *graph_potentials, *template_potentials;

 private:
  std::vector<nb::object> kept_;
};

// The gradients of the differentiable fields, in the order of `DIFFERENTIABLE` in problem.py. Wanted are those that
// `needs` asks for, in the same order, of tensors that the problem has. The others are None.
class FieldGradients {
 public:
  FieldGradients(const ProblemTensors& tensors, nb::sequence needs);

  // Replaces each wanted gradient, None at first, by make(field, gradient).
  template <class Make>
  void replace_wanted(Make make) {
    for (size_t i = 0; i < wanted_.size(); ++i)
      if (wanted_[i]) gradients_[i] = make(differentiable()[i], gradients_[i]);
  }

  nb::list list() const;

 private:
  static const std::vector<Field>& differentiable();

  std::vector<bool> wanted_;
  std::vector<nb::object> gradients_;
};

// Whether the checks of options, shapes, dtypes and devices (checks.py) are certain to pass. Those report what is wrong, and
// take longer than everything else around a small solve. If this returns false, the problem may still be valid.
bool is_plain(const Torch& torch, nb::handle problem);

}  // namespace tfgw

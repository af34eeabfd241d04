#include "problem_view.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>

namespace tfgw {
namespace {

int place_in(nb::handle type, const char* field) {
  return nb::cast<int>(type.attr("_fields").attr("index")(field));
}

bool is_count(nb::handle number) {
  if (!PyLong_CheckExact(number.ptr())) return false;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  return !overflow && value >= 1 && value <= std::numeric_limits<int32_t>::max();
}

nb::object problem_module() { return nb::module_::import_("tfgw.ot.problem"); }

}  // namespace

const std::array<int, kFields>& ProblemView::places() {
  static const std::array<int, kFields> found = [] {
    std::array<int, kFields> places;
    const nb::object type = problem_module().attr("Problem");
    for (int field = 0; field < kFields; ++field) places[field] = place_in(type, kFieldNames[field]);
    return places;
  }();
  return found;
}

int ProblemView::place_of_places() {
  static const int found = place_in(problem_module().attr("StructurePattern"), "places");
  return found;
}

ProblemTensors::ProblemTensors(const Torch& torch, const ProblemView& view) {
  for (int field = 0; field < kTensors; ++field)
    std::tie(read[field], info[field]) = torch.to_native(view[Field(field)], kFieldNames[field]);
}

SolvedTensors::SolvedTensors(const Torch& torch, nb::handle solved) {
  const auto read = [&](const double*& values, const char* name) {
    const auto [tensor, info] = torch.to_native(nb::object(solved.attr(name)), name);
    values = reinterpret_cast<const double*>(info.address);
    kept_.push_back(tensor);
  };
  read(structure_costs, "structure_costs"), read(feature_costs, "feature_costs"), read(plans, "plans");
  read(graph_potentials, "graph_potentials"), read(template_potentials, "template_potentials");
}

FieldGradients::FieldGradients(const ProblemTensors& tensors, nb::sequence needs)
    : gradients_(differentiable().size(), nb::none()) {
  for (size_t i = 0; i < gradients_.size(); ++i)
    wanted_.push_back(tensors.has(differentiable()[i]) && PyObject_IsTrue(nb::object(needs[i]).ptr()) == 1);
}

nb::list FieldGradients::list() const {
  nb::list list;
  for (const nb::object& gradient : gradients_) list.append(gradient);
  return list;
}

const std::vector<Field>& FieldGradients::differentiable() {
  static const std::vector<Field> found = [] {
    std::vector<Field> fields;
    for (const nb::handle name : nb::object(problem_module().attr("DIFFERENTIABLE"))) {
      const auto* const place = std::find(kFieldNames, kFieldNames + kTensors, nb::cast<std::string>(name));
      if (place == kFieldNames + kTensors) throw std::logic_error("a differentiable field is no tensor of a problem");
      fields.push_back(Field(place - kFieldNames));
    }
    return fields;
  }();
  return found;
}

bool is_plain(const Torch& torch, nb::handle problem) {
  const ProblemView view(problem);
  if (!torch.is_own(view[kX])) return false;
  const nb::handle graphs = view[kBatchSize], tol = view[kTol];
  if (!is_count(view[kMaxIter]) || !is_count(view[kNumStarts])) return false;
  if (!PyFloat_CheckExact(tol.ptr()) || !(PyFloat_AsDouble(tol.ptr()) >= 0)) return false;
  if (!graphs.is_none() && (!PyLong_CheckExact(graphs.ptr()) || nb::cast<i64>(graphs) < 1)) return false;
  constexpr bool kFloating = true, kInteger = false;
  const i64 device = torch.info(view[kX]).device;
  const auto is = [&](Field field, bool floating, std::initializer_list<i64*> shape) {
    return torch.is_plain(view[field], floating, shape, device);
  };
  const auto may_be = [&](Field field, bool floating, std::initializer_list<i64*> shape) {
    return view[field].is_none() || is(field, floating, shape);
  };
  i64 nodes = Torch::kAny, features = Torch::kAny, edges = Torch::kAny, templates = Torch::kAny, columns = Torch::kAny;
  i64 entries = Torch::kAny, dense = Torch::kAny, ends = 2;
  if (!is(kX, kFloating, {&nodes, &features})) return false;
  if (!is(kTemplateFeatures, kFloating, {&templates, &columns, &features})) return false;
  if (!nodes || !templates || !columns || !view[kCost].is_none() || !view[kInitialPlans].is_none()) return false;
  const bool sparse = !view[kEdgeIndex].is_none(), matrices = !view[kStructure].is_none();
  if (sparse && (matrices || !is(kEdgeIndex, kInteger, {&ends, &edges}))) return false;
  if (matrices && !is(kStructure, kFloating, {&dense})) return false;
  if (!(sparse ? may_be(kEdgeWeight, kFloating, {&edges}) : view[kEdgeWeight].is_none())) return false;
  const bool structured = !view[kPattern].is_none() ? is(kTemplateStructure, kFloating, {&templates, &entries})
                          : sparse || matrices       ? is(kTemplateStructure, kFloating, {&templates, &columns, &columns})
                                                     : view[kTemplateStructure].is_none();
  if (!structured || (!view[kPattern].is_none() && !sparse && !matrices)) return false;
  return may_be(kBatch, kInteger, {&nodes}) && may_be(kNodeWeights, kFloating, {&nodes}) &&
         is(kTemplateWeights, kFloating, {&templates, &columns}) &&
         (is(kAlpha, kFloating, {}) || is(kAlpha, kFloating, {&templates}));
}

}  // namespace tfgw

// The C++ core for tensors on the CPU. A problem is read in place, validated, prepared and solved; its backward pass
// reuses the prepared data.
#include "cpu.hpp"

#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "batch.hpp"
#include "problem_view.hpp"
#include "python_signals.hpp"
#include "validate.hpp"

namespace tfgw {
namespace {

template <class T>
T* pointer(const Torch::TensorInfo& info) {
  return reinterpret_cast<T*>(info.address);
}

// Never destroyed, because the interpreter may have been finalised by then.
const Torch& torch() {
  static const Torch* const found = new Torch;
  return *found;
}

template <class T>
T* memory(const nb::object& tensor) {
  return reinterpret_cast<T*>(torch().address(tensor));
}

// A problem in the core's format, and the owner of everything it points to.
class CpuProblem {
 public:
  explicit CpuProblem(nb::object problem)
      : problem_(std::move(problem)), view_(problem_), given_(torch(), view_), places_(view_.entry_places()) {
    read_graphs();
    read_templates();
  }

  // Throws std::invalid_argument naming the argument and the graph.
  void check(double weight_tolerance) const {
    validate(templates_, weight_tolerance);
    validate(graphs_, weight_tolerance);
    const int64_t pairs = templates_.count * templates_.nodes;
    validate_rows("initial_plans", start(), pairs, graphs_);
    validate_rows("cost", graphs_.cost, pairs, graphs_);
  }

  void prepare(int threads) { batch_.emplace(graphs_, templates_, threads); }
  const PreparedBatch& batch() const { return *batch_; }
  int64_t pairs() const { return graphs_.graphs * templates_.count; }
  const double* start() const { return pointer<double>(given_.info[kInitialPlans]); }
  nb::object device() const { return torch().device(given_.read[kX]); }
  bool has(Field field) const { return given_.has(field); }
  const ProblemTensors& tensors() const { return given_; }

  // Zeros for the gradient of a tensor, in its shape. A single α gets one per template, to be summed later.
  nb::object zeros_like(Field field) const {
    const bool single = field == kAlpha && has_single_alpha();
    const nb::object zeros = single ? torch().doubles(device(), templates_.count) : torch().like(given_.read[field]);
    std::fill_n(memory<double>(zeros), single ? templates_.count : given_.info[field].count, 0.0);
    return zeros;
  }
  // A gradient in the shape and precision of its tensor. For a single α it is summed by PyTorch, as for an expanded
  // tensor.
  nb::object as_given(nb::object gradient, Field field) const {
    if (field == kAlpha && has_single_alpha()) gradient = torch().summed(gradient, given_.read[kAlpha]);
    return torch().in_precision_of(gradient, view_[field]);
  }

  // The gradient of the free entries: for each, the sum over its places.
  void fold(const std::vector<double>& structure, double* entries) const {
    const int64_t* const places = entry_places_;
    const int64_t count = given_.size(kTemplateStructure, 1), m = templates_.nodes;
    for (int64_t k = 0; k < templates_.count; ++k)
      for (int64_t e = 0; e < count; ++e) {
        const double* C = structure.data() + k * m * m;
        const int64_t first = places[2 * e], second = places[2 * e + 1];
        entries[k * count + e] = first == second ? C[first] : C[first] + C[second];
      }
  }
  bool has_pattern() const { return !places_.is_none(); }

 private:
  void read_graphs() {
    BatchInput& in = graphs_;
    in.graphs = view_.as<int64_t>(kBatchSize);
    in.nodes = given_.size(kX, 0), in.features = given_.size(kX, 1);
    ptr_ = has(kBatch) ? graph_offsets(pointer<int64_t>(given_.info[kBatch]), in.nodes, in.graphs)
                       : single_graph(in.nodes, in.graphs);
    in.ptr = ptr_.data();
    in.x = pointer<double>(given_.info[kX]);
    in.weights = pointer<double>(given_.info[kNodeWeights]);
    if (!in.weights) in.weights = uniform();
    in.kind = has(kEdgeIndex) ? StructureKind::sparse : has(kStructure) ? StructureKind::dense : StructureKind::none;
    in.edges = has(kEdgeIndex) ? given_.size(kEdgeIndex, 1) : 0;
    in.edge_index = pointer<int64_t>(given_.info[kEdgeIndex]);
    in.edge_weight = pointer<double>(given_.info[kEdgeWeight]);
    in.dense = pointer<double>(given_.info[kStructure]);
    in.cost = pointer<double>(given_.info[kCost]);
    if (in.kind == StructureKind::dense) check_dense_size();
  }

  static std::vector<int64_t> single_graph(int64_t nodes, int64_t graphs) {
    std::vector<int64_t> ptr(size_t(graphs) + 1, nodes);
    ptr[0] = 0;
    return ptr;
  }

  const double* uniform() {
    weights_.resize(size_t(graphs_.nodes));
    for (int64_t b = 0; b < graphs_.graphs; ++b)
      for (int64_t i = ptr_[b]; i < ptr_[b + 1]; ++i) weights_[i] = 1.0 / double(ptr_[b + 1] - ptr_[b]);
    return weights_.data();
  }

  void check_dense_size() const {
    int64_t needed = 0;
    for (int64_t b = 0; b < graphs_.graphs; ++b) needed += (ptr_[b + 1] - ptr_[b]) * (ptr_[b + 1] - ptr_[b]);
    const i64 found = given_.info[kStructure].count;
    if (found != needed)
      throw std::invalid_argument("structure: has " + std::to_string(found) + " entries, but graphs of these sizes need " +
                                  std::to_string(needed));
  }

  void read_templates() {
    TemplatesInput& in = templates_;
    in.count = given_.size(kTemplateWeights, 0), in.nodes = given_.size(kTemplateWeights, 1);
    in.features = graphs_.features;
    in.structure = has_pattern() ? expanded_structure() : pointer<double>(given_.info[kTemplateStructure]);
    in.x = pointer<double>(given_.info[kTemplateFeatures]);
    in.weights = pointer<double>(given_.info[kTemplateWeights]);
    in.alpha = pointer<double>(given_.info[kAlpha]);
    if (!has_single_alpha()) return;
    alpha_.assign(size_t(in.count), *in.alpha);
    in.alpha = alpha_.data();
  }

  bool has_single_alpha() const { return given_.info[kAlpha].count != templates_.count; }

  const double* expanded_structure() {
    const int64_t* const places = entry_places_ = memory<int64_t>(places_);
    const int64_t count = given_.size(kTemplateStructure, 1), square = templates_.nodes * templates_.nodes;
    const double* entries = pointer<double>(given_.info[kTemplateStructure]);
    structure_.assign(size_t(templates_.count * square), 0.0);
    for (int64_t k = 0; k < templates_.count; ++k)
      for (int64_t e = 0; e < count; ++e)
        structure_[k * square + places[2 * e]] = structure_[k * square + places[2 * e + 1]] = entries[k * count + e];
    return structure_.data();
  }

  const nb::object problem_;
  const ProblemView view_;
  const ProblemTensors given_;
  const nb::object places_;
  const int64_t* entry_places_ = nullptr;  // address of `places_`, because Python cannot be called without the GIL
  std::vector<int64_t> ptr_;
  std::vector<double> weights_, structure_, alpha_;
  BatchInput graphs_{};
  TemplatesInput templates_{};
  std::optional<PreparedBatch> batch_;
};

// The gradient of the distances. The gradient of a sum is one expanded number; copying it here is faster than in
// PyTorch.
class Upstream {
 public:
  explicit Upstream(nb::handle grad) {
    const Torch::TensorInfo given = torch().info(grad);
    if (!given.readable() && given.copyable()) {
      copy_.resize(size_t(given.count));
      Torch::copy_values(given, copy_.data());
    } else {
      std::tie(read_, info_) = torch().to_native(grad, "gradient of the distances");
    }
  }
  const double* values() const { return copy_.empty() ? pointer<double>(info_) : copy_.data(); }

 private:
  std::vector<double> copy_;
  nb::object read_;
  Torch::TensorInfo info_;
};

double*& member_of(GradientOutput& out, Field field) {
  switch (field) {
    case kX: return out.x;
    case kNodeWeights: return out.weights;
    case kEdgeWeight:
    case kStructure: return out.structure;
    case kTemplateStructure: return out.template_structure;
    case kTemplateFeatures: return out.template_x;
    case kTemplateWeights: return out.template_weights;
    case kAlpha: return out.alpha;
    default: throw std::logic_error(std::string(kFieldNames[field]) + " is not differentiable");
  }
}

// Gradients of sum(grad · distances) for the tensors that need one, in their precision; None for the others.
nb::list gradients(const CpuProblem& problem, const SolvedPairs& solved, nb::handle grad, nb::sequence needs,
                   int threads) {
  const Upstream up(grad);
  GradientOutput out{};
  FieldGradients found(problem.tensors(), needs);
  found.replace_wanted([&](Field field, const nb::object&) {
    const nb::object zeros = problem.zeros_like(field);
    member_of(out, field) = memory<double>(zeros);
    return zeros;
  });
  std::vector<double> structure;  // the gradient of full matrices, if the problem has free entries
  const TemplatesInput& templates = problem.batch().templates_input;
  double* const entries = problem.has_pattern() ? out.template_structure : nullptr;
  if (entries) {
    structure.assign(size_t(templates.count * templates.nodes * templates.nodes), 0.0);
    out.template_structure = structure.data();
  }
  {
    nb::gil_scoped_release release;
    backward_batch(problem.batch(), solved, up.values(), threads, out);
    if (entries) problem.fold(structure, entries);
  }
  found.replace_wanted([&](Field field, const nb::object& gradient) { return problem.as_given(gradient, field); });
  return found.list();
}

// A problem and its solution: everything that results and the backward pass are computed from.
class SolvedProblem {
 public:
  explicit SolvedProblem(nb::object given) : problem_(std::move(given)) {}

  // Returns false if interrupted.
  bool solve(const SolveOptions& options, double weight_tolerance, int threads, int wanted, Interrupt& interrupt) {
    problem_.check(weight_tolerance);
    problem_.prepare(threads);
    SolveOutput out{};
    out.distance = allocated(distance_, pairs()), out.gap = allocated(gap_, pairs());
    out.structure_cost = allocated(structure_cost_, pairs()), out.feature_cost = allocated(feature_cost_, pairs());
    out.iterations = allocated(iterations_, pairs()), out.status = allocated(status_, pairs());
    if (wanted & (kPlans | kGradients)) {
      out.row_potential = allocated(row_potential_, nodes() * templates());
      out.col_potential = allocated(col_potential_, pairs() * columns());
      plans_.resize(size_t(pairs()));
      out.plans = plans_.data();
    }
    if (wanted & kDiagnosis) {
      out.spread = allocated(spread_, pairs()), out.lower_bound = allocated(lower_bound_, pairs());
      out.local_minimum = allocated(local_minimum_, pairs());
      std::fill_n(out.lower_bound, pairs(), 0.0), std::fill_n(out.local_minimum, pairs(), 1);  // of empty graphs
    }
    return solve_batch(problem_.batch(), options, problem_.start(), threads, interrupt, out);
  }

  nb::object distances() const { return of_pairs(distance_); }

  nb::tuple results(bool with_plans) const {
    const nb::object plan = with_plans ? dense_plans() : nothing(), u = with_plans ? row_potentials() : nothing();
    const nb::object v = with_plans ? col_potentials() : nothing();
    return nb::make_tuple(of_pairs(structure_cost_), of_pairs(feature_cost_), of_pairs(gap_), of_pairs(iterations_),
                          of_pairs(status_), plan, u, v);
  }

  nb::tuple diagnosis() const {
    return nb::make_tuple(of_pairs(spread_), of_pairs(lower_bound_), of_pairs(local_minimum_));
  }

  nb::list backward(nb::handle grad, nb::sequence needs, int threads) const {
    const SolvedPairs solved{structure_cost_.get(), feature_cost_.get(), row_potential_.get(), col_potential_.get(),
                             plans_.data(), nullptr};
    return gradients(problem_, solved, grad, needs, threads);
  }

 private:
  int64_t nodes() const { return problem_.batch().graphs_input.nodes; }
  int64_t graphs() const { return problem_.batch().graphs_input.graphs; }
  int64_t templates() const { return problem_.batch().templates_input.count; }
  int64_t columns() const { return problem_.batch().templates_input.nodes; }
  int64_t pairs() const { return problem_.pairs(); }

  template <class T>
  static T* allocated(std::unique_ptr<T[]>& owner, int64_t count) {
    owner.reset(new T[size_t(count)]);  // not zeroed
    return owner.get();
  }

  nb::object nothing() const { return torch().doubles(problem_.device(), 0); }
  nb::object of_pairs(const std::unique_ptr<double[]>& values) const {
    return filled(torch().doubles(problem_.device(), graphs(), templates()), values.get(), pairs());
  }
  nb::object of_pairs(const std::unique_ptr<int32_t[]>& values) const {
    return filled(torch().integers(problem_.device(), graphs(), templates()), values.get(), pairs());
  }
  nb::object row_potentials() const {
    return filled(torch().doubles(problem_.device(), nodes(), templates()), row_potential_.get(), nodes() * templates());
  }
  nb::object col_potentials() const {
    return filled(torch().doubles(problem_.device(), graphs(), templates(), columns()), col_potential_.get(),
                  pairs() * columns());
  }
  template <class T>
  static nb::object filled(nb::object tensor, const T* values, int64_t count) {
    std::copy_n(values, count, memory<T>(tensor));
    return tensor;
  }

  nb::object dense_plans() const {
    const nb::object dense = torch().doubles(problem_.device(), nodes(), templates(), columns());
    double* const out = memory<double>(dense);
    std::fill_n(out, nodes() * templates() * columns(), 0.0);
    for (int64_t b = 0; b < graphs(); ++b)
      for (int64_t k = 0; k < templates(); ++k) {
        const SparsePlan& plan = plans_[size_t(b * templates() + k)];
        double* const rows = out + (problem_.batch().graphs[b].first_node * templates() + k) * columns();
        for (int e = 0; e < plan.count(); ++e) rows[plan.row[e] * templates() * columns() + plan.col[e]] = plan.mass[e];
      }
    return dense;
  }

  CpuProblem problem_;
  std::vector<SparsePlan> plans_;
  std::unique_ptr<double[]> distance_, structure_cost_, feature_cost_, gap_, row_potential_, col_potential_;
  std::unique_ptr<double[]> spread_, lower_bound_;
  std::unique_ptr<int32_t[]> iterations_, status_, local_minimum_;
};

SolveOptions options_of(const ProblemView& view) {
  SolveOptions options;
  options.max_iter = view.as<int>(kMaxIter);
  options.tol = view.as<double>(kTol);
  options.starts = view.as<int>(kNumStarts);
  options.kinds = view.as<int>(kStartKinds);
  return options;
}

// Distances and whatever else is requested: the results, the three tensors of a diagnosis, and the solved problem for
// its gradients. What is not requested is None.
nb::tuple solve(nb::tuple given, int wanted, double weight_tolerance, int threads) {
  auto solved = std::make_unique<SolvedProblem>(given);
  const SolveOptions options = options_of(ProblemView(given));
  PythonSignals signals;
  bool finished;
  {
    nb::gil_scoped_release release;
    finished = solved->solve(options, weight_tolerance, threads, wanted, signals);
  }
  if (!finished) throw nb::python_error();
  const nb::object distances = solved->distances();
  const nb::object results = wanted & kResults ? nb::object(solved->results(wanted & kPlans)) : nb::none();
  const nb::object diagnosis = wanted & kDiagnosis ? nb::object(solved->diagnosis()) : nb::none();
  return nb::make_tuple(distances, results, diagnosis,
                        wanted & kGradients ? nb::cast(std::move(solved)) : nb::none());
}

// Lower bounds of a problem that was solved elsewhere, and whether its plans are local minima.
nb::tuple assess(nb::tuple given, nb::handle plans, nb::handle distances, nb::handle status, int threads) {
  CpuProblem problem(given);
  const auto [read_plans, plan_info] = torch().to_native(plans, "plans");
  const auto [read_distances, distance_info] = torch().to_native(distances, "distances");
  const auto [read_status, status_info] = torch().to_native(status, "status");
  const GivenSolution solution{pointer<double>(plan_info), pointer<double>(distance_info),
                               pointer<int64_t>(status_info)};
  const nb::object bounds = torch().like(distances), minima = torch().integers(problem.device(), problem.pairs());
  std::fill_n(memory<double>(bounds), problem.pairs(), 0.0);
  std::fill_n(memory<int32_t>(minima), problem.pairs(), 1);
  double* const lower_bound = memory<double>(bounds);
  int32_t* const local_minimum = memory<int32_t>(minima);
  PythonSignals signals;
  bool finished;
  {
    nb::gil_scoped_release release;
    problem.prepare(threads);
    finished = assess_batch(problem.batch(), solution, threads, signals, lower_bound, local_minimum);
  }
  if (!finished) throw nb::python_error();
  return nb::make_tuple(bounds, minima);
}

// Gradients of a problem that was solved elsewhere. Repeats the solve's preparation.
nb::list backward_of_solved(nb::tuple given, nb::handle grad, nb::sequence needs, nb::handle solved, int threads) {
  CpuProblem problem(given);
  problem.prepare(threads);
  const SolvedTensors tensors(torch(), solved);
  const SolvedPairs pairs{tensors.structure_costs,     tensors.feature_costs, tensors.graph_potentials,
                          tensors.template_potentials, nullptr,               tensors.plans};
  return gradients(problem, pairs, grad, needs, threads);
}

// The index of the last graph of a sorted batch; of an unsorted one, its largest entry.
int64_t last_graph(nb::handle batch) {
  const auto [read, info] = torch().to_native(batch, "batch");
  const int64_t* const first = pointer<int64_t>(info);
  return *std::max_element(first, first + info.count);
}

}  // namespace

void bind_cpu(nb::module_& module) {
  nb::class_<SolvedProblem>(module, "SolvedProblem")
      .def("backward", &SolvedProblem::backward, nb::arg("grad"), nb::arg("needs"), nb::arg("threads"));
  module.def("solve", &solve, nb::arg("problem"), nb::arg("wanted"), nb::arg("weight_tolerance"), nb::arg("threads"));
  module.def("backward_of_solved", &backward_of_solved, nb::arg("problem"), nb::arg("grad"), nb::arg("needs"),
             nb::arg("solved"), nb::arg("threads"));
  module.attr("RESULTS") = int(kResults);
  module.attr("PLANS") = int(kPlans);
  module.attr("GRADIENTS") = int(kGradients);
  module.attr("DIAGNOSIS") = int(kDiagnosis);
  module.def("assess", &assess, nb::arg("problem"), nb::arg("plans"), nb::arg("distances"), nb::arg("status"),
             nb::arg("threads"));
  module.def("last_graph", &last_graph, nb::arg("batch"));
  module.def("is_plain", [](nb::tuple problem) { return is_plain(torch(), problem); }, nb::arg("problem"));
}

}  // namespace tfgw

// Facts about the core that hold for random problems of every kind. Meant to run under sanitizers.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <random>

#include "checks.hpp"
#include "graph_set.hpp"
#include "kernels.hpp"
#include "layers.hpp"
#include "test_basis.hpp"
#include "transport.hpp"
#include "validate.hpp"

namespace tfgw::test {
namespace {

constexpr unsigned kPatience = 60;  // seconds for one problem, under sanitizers; then the program ends

std::vector<uint8_t> random_bytes(uint32_t seed, size_t count) {
  std::mt19937 generator(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& b : bytes) b = uint8_t(generator());
  return bytes;
}

PreparedBatch prepared(const RandomProblem& p) { return PreparedBatch(p.graphs_input(), p.templates_input(), p.threads); }

Solved solve(const RandomProblem& p, int threads) {
  Solved solved(p);
  Interrupt never;
  const double* start = p.start.empty() ? nullptr : p.start.data();
  CHECK(solve_batch(prepared(p), p.options, start, threads, never, solved.output()));
  return solved;
}

Gradients backward(const RandomProblem& p, const Solved& solved, int threads) {
  Gradients gradients(p);
  const std::vector<double> ones(solved.distance.size(), 1.0);
  backward_batch(prepared(p), solved.pairs(), ones.data(), threads, gradients.output());
  return gradients;
}

void test_random_problems(Values values, int count) {
  for (int seed = 0; seed < count; ++seed) {
    const std::vector<uint8_t> data = random_bytes(uint32_t(seed), 1 << 16);
    Bytes bytes(data.data(), data.size());
    const RandomProblem p = make_problem(bytes, values);
    alarm(kPatience);
    validate(p.templates_input(), 1e-6);
    validate(p.graphs_input(), 1e-6);
    const Solved one = solve(p, 1), three = solve(p, 3);
    check_solved(p, one);
    if (values != Values::extreme) {  // NaN is not equal to itself
      CHECK(one.distance == three.distance && one.dense_plans(p) == three.dense_plans(p) && one.col_potential == three.col_potential);
      CHECK(one.row_potential == three.row_potential && one.iterations == three.iterations);
    }
    const Gradients gradients = backward(p, one, 1), other = backward(p, one, 3);
    check_gradients(p, one, gradients);
    if (values != Values::extreme)
      CHECK(gradients.x == other.x && gradients.structure == other.structure &&
            gradients.template_structure == other.template_structure && gradients.template_x == other.template_x);
  }
}

void test_gradients_can_be_left_out() {
  const std::vector<uint8_t> data = random_bytes(7, 1 << 16);
  Bytes bytes(data.data(), data.size());
  const RandomProblem p = make_problem(bytes, Values::continuous);
  const Solved solved = solve(p, 1);
  const Gradients all = backward(p, solved, 1);
  Gradients some(p);
  GradientOutput out{};
  out.template_x = some.template_x.data();
  const std::vector<double> ones(solved.distance.size(), 1.0);
  backward_batch(prepared(p), solved.pairs(), ones.data(), 2, out);
  CHECK(some.template_x == all.template_x);
}

// A sequence of costs for one pair of marginals: each optimum from the last basis is the one found from scratch.
void test_warm_starts(int rows, int cols, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> small(0, 3);
  std::uniform_real_distribution<double> real;
  std::vector<double> h(rows), h_bar(cols);
  for (double& w : h) w = small(generator);
  for (double& w : h_bar) w = 1 + small(generator);
  h[0] += 1;
  std::vector<int64_t> supply(rows), demand(cols);
  to_fixed_point(h.data(), rows, supply.data());
  to_fixed_point(h_bar.data(), cols, demand.data());

  const int ld = padded(cols);
  TransportSimplex warm, cold;
  warm.reset(rows, cols, ld, supply.data(), demand.data());
  Interrupt never;
  for (int round = 0; round < 6; ++round) {
    std::vector<double> cost(size_t(rows) * ld, kPadCost);
    for (int i = 0; i < rows; ++i)
      for (int k = 0; k < cols; ++k) cost[size_t(i) * ld + k] = round % 2 ? real(generator) : small(generator);
    cold.reset(rows, cols, ld, supply.data(), demand.data());
    double values[2];
    for (TransportSimplex* solver : {&warm, &cold}) {
      CHECK(solver->solve(cost.data(), never) == Outcome::optimal);
      SparsePlan plan;
      solver->flow(plan);
      CHECK(plan.count() <= rows + cols - 1);
      std::vector<double> sent(rows, 0.0), received(cols, 0.0);
      double value = 0;
      for (int e = 0; e < plan.count(); ++e) {
        CHECK(plan.mass[e] > 0);
        sent[plan.row[e]] += plan.mass[e];
        received[plan.col[e]] += plan.mass[e];
        const double c = cost[size_t(plan.row[e]) * ld + plan.col[e]];
        value += plan.mass[e] * c;
        CHECK(std::abs(c - solver->row_potentials()[plan.row[e]] - solver->col_potentials()[plan.col[e]]) < 1e-10);
      }
      for (int i = 0; i < rows; ++i) CHECK(std::abs(sent[i] - double(supply[i]) * kMassUnit) < 1e-14);
      for (int k = 0; k < cols; ++k) CHECK(std::abs(received[k] - double(demand[k]) * kMassUnit) < 1e-14);
      for (int i = 0; i < rows; ++i)
        for (int k = 0; k < cols; ++k)
          CHECK(cost[size_t(i) * ld + k] - solver->row_potentials()[i] - solver->col_potentials()[k] > -1e-10);
      values[solver == &cold] = value;
    }
    CHECK(std::abs(values[0] - values[1]) < 1e-12);
  }
}

void test_fixed_point_sums() {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> exponent(-40, 0);
    std::vector<double> w(1 + seed % 37);
    for (double& v : w) v = std::pow(10.0, exponent(generator));
    std::vector<int64_t> fixed(w.size());
    to_fixed_point(w.data(), int(w.size()), fixed.data());
    int64_t total = 0;
    for (int64_t f : fixed) {
      CHECK(f >= 0);
      total += f;
    }
    CHECK(total == int64_t(1) << kMassBits);
  }
}

// Where costs are of one size, a refinement finds nothing to improve and leaves the bits of plan and potentials alone.
void test_refinement_of_an_optimum(int rows, int cols, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> real(0.5, 2.0);
  std::vector<double> h(rows), h_bar(cols);
  for (double& w : h) w = real(generator);
  for (double& w : h_bar) w = real(generator);
  std::vector<int64_t> supply(rows), demand(cols);
  to_fixed_point(h.data(), rows, supply.data());
  to_fixed_point(h_bar.data(), cols, demand.data());
  const int ld = padded(cols);
  std::vector<double> cost(size_t(rows) * ld, kPadCost);
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < cols; ++k) cost[size_t(i) * ld + k] = real(generator);
  TransportSimplex solver;
  solver.reset(rows, cols, ld, supply.data(), demand.data());
  Interrupt never;
  CHECK(solver.solve(cost.data(), never) == Outcome::optimal);
  const auto potentials = [&] {
    std::vector<double> found(solver.row_potentials(), solver.row_potentials() + rows);
    found.insert(found.end(), solver.col_potentials(), solver.col_potentials() + cols);
    return found;
  };
  SparsePlan plan, refined;
  solver.flow(plan);
  const std::vector<double> before = potentials();
  CHECK(solver.refine(never) == Outcome::optimal && solver.is_refined());
  solver.flow(refined);
  CHECK(refined.same_as(plan) && potentials() == before);
}

// The similarity that breaks ties, from the squares that the solver has: (1−α) ⟨f, f̄⟩ + α.
void test_tie_similarity() {
  const double f[] = {1.5, -2.0, 0.25}, f_bar[] = {-0.5, 1.0, 3.0};
  double product = 0, norms = 0, distance = 0;
  for (int d = 0; d < 3; ++d) {
    product += f[d] * f_bar[d];
    norms += f[d] * f[d] + f_bar[d] * f_bar[d];
    distance += (f[d] - f_bar[d]) * (f[d] - f_bar[d]);
  }
  for (double alpha : {0.0, 0.3, 1.0})
    CHECK(std::abs(tie_similarity(alpha, norms, (1 - alpha) * distance) - ((1 - alpha) * product + alpha)) < 1e-14);
}

void test_dense_plans_have_the_same_gradients() {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::vector<uint8_t> data = random_bytes(seed, 1 << 16);
    Bytes bytes(data.data(), data.size());
    const RandomProblem p = make_problem(bytes, Values::continuous);
    const Solved solved = solve(p, 2);
    const std::vector<double> plans = solved.dense_plans(p), ones(solved.distance.size(), 1.0);
    SolvedPairs pairs = solved.pairs();
    pairs.plans = nullptr, pairs.dense_plans = plans.data();
    Gradients from_dense(p);
    backward_batch(prepared(p), pairs, ones.data(), 2, from_dense.output());
    const Gradients from_sparse = backward(p, solved, 2);
    CHECK(from_sparse.x == from_dense.x && from_sparse.structure == from_dense.structure);
    CHECK(from_sparse.template_structure == from_dense.template_structure);
  }
}

class StopAfter : public Interrupt {
 public:
  explicit StopAfter(int polls) : left_(polls) {}

 protected:
  bool requested() override { return left_-- <= 0; }

 private:
  std::atomic<int> left_;
};

void test_interrupt() {
  const std::vector<uint8_t> data = random_bytes(3, 1 << 16);
  Bytes bytes(data.data(), data.size());
  const RandomProblem p = make_problem(bytes, Values::continuous);
  for (int threads : {1, 2, 3}) {
    Solved solved(p);
    StopAfter interrupt(2);
    CHECK(!solve_batch(prepared(p), p.options, nullptr, threads, interrupt, solved.output()));
  }
}

// All pairs of the graphs of a problem. Bounds are below values, which are the same on any number of threads and however
// few templates are kept.
void test_pairs(Values values, int count) {
  for (int seed = 0; seed < count; ++seed) {
    const std::vector<uint8_t> data = random_bytes(uint32_t(seed), 1 << 16);
    Bytes bytes(data.data(), data.size());
    const RandomProblem p = make_problem(bytes, values);
    if (!p.cost.empty()) continue;
    std::vector<GraphPair> pairs;
    for (int64_t a = 0; a < p.graphs(); ++a)
      for (int64_t b = 0; b < a; ++b)
        if (p.ptr[a] < p.ptr[a + 1] && p.ptr[b] < p.ptr[b + 1]) pairs.push_back({b, a});
    alarm(kPatience);
    Interrupt never;
    std::array<std::vector<double>, 2> distances;
    for (int threads : {1, 3}) {
      const int64_t kept = threads == 1 ? GraphSet::kKeptEntries : 30;
      GraphSet set(p.graphs_input(), p.alpha[0], NodeCost::squared_euclidean, threads, kept);
      std::vector<double>& found = distances[threads / 2];
      std::vector<double> lower(pairs.size()), marginal(pairs.size());
      found.resize(pairs.size());
      SolveOptions options = p.options;
      if (!(options.kinds & (kUniform | kAnchored))) options.kinds |= kUniform;
      CHECK(set.marginal_bounds(pairs, threads, never, marginal.data()));
      CHECK(set.lower_bounds(pairs, threads, never, lower.data()));
      CHECK(set.distances(pairs, options, threads, never, found.data()));
      for (size_t i = 0; i < pairs.size() && values != Values::extreme; ++i) {
        CHECK(lower[i] <= found[i] * (1 + 1e-9) + 1e-9);
        CHECK(marginal[i] <= lower[i] * (1 + 1e-9) + 1e-9);
      }
    }
    if (values != Values::extreme) CHECK(distances[0] == distances[1]);
  }
}

// A map of rows is what its definition says, and a row's image does not depend on the rows before and after it.
template <class T>
void test_row_maps(int64_t rows, int64_t in, int64_t out, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<T> normal;
  const auto numbers = [&](int64_t count) {
    std::vector<T> found(static_cast<size_t>(count));
    for (T& number : found) number = normal(generator);
    return found;
  };
  const std::vector<T> x = numbers(rows * in), weight = numbers(out * in), bias = numbers(out), mean = numbers(out);
  const std::vector<T> variance(size_t(out), T(2));
  RowMap<T> map{{RowStep<T>::Kind::linear, in, out, weight.data(), bias.data()},
                norm_step(out, mean.data(), variance.data(), bias.data(), mean.data(), 0.25),
                {RowStep<T>::Kind::relu, out, out}};
  const int64_t stride = out + 3;
  std::vector<T> together(size_t(rows * stride)), alone(static_cast<size_t>(out));
  map_rows(map, rows, in, x.data(), together.data(), stride);
  for (int64_t i = 0; i < rows; ++i) {
    map_rows(map, 1, in, x.data() + i * in, alone.data(), out);
    for (int64_t j = 0; j < out; ++j) {
      CHECK(alone[j] == together[i * stride + j]);
      double expected = bias[j];
      for (int64_t c = 0; c < in; ++c) expected += double(x[i * in + c]) * weight[j * in + c];
      expected = std::max(0.0, (expected - mean[j]) / 1.5 * bias[j] + mean[j]);
      CHECK(std::abs(alone[j] - expected) < (sizeof(T) == sizeof(float) ? 1e-4 : 1e-12) * (1 + std::abs(expected)));
    }
  }
}

// Layers of one column that map sums to themselves: the sums over edges are visible.
void test_sums_over_neighbours() {
  const std::vector<double> x{1, 10, 100}, one{1};
  const std::vector<int64_t> edges{0, 0, 1, /* to */ 1, 2, 2};
  const RowMap<double> same{{RowStep<double>::Kind::linear, 1, 1, one.data()}};
  std::vector<double> out(9);
  encode_nodes<double>({3, 1, 3, x.data(), edges.data(), {{1, same}, {2, same}}}, 3, out.data());
  CHECK((out == std::vector<double>{1, 1, 2, 10, 11, 23, 100, 111, 234}));
}

}  // namespace
}  // namespace tfgw::test

int main() {
  using namespace tfgw::test;
  test_random_problems(Values::continuous, 150);
  test_random_problems(Values::tied, 150);
  test_random_problems(Values::extreme, 100);
  test_pairs(Values::continuous, 60);
  test_pairs(Values::tied, 60);
  test_pairs(Values::extreme, 40);
  test_gradients_can_be_left_out();
  test_fixed_point_sums();
  test_bases();
  test_tie_similarity();
  for (uint32_t seed = 0; seed < 5; ++seed) test_refinement_of_an_optimum(9, 14, seed);
  test_dense_plans_have_the_same_gradients();
  test_interrupt();
  for (int64_t rows : {1, 2, 5, 64, 131})
    for (int64_t in : {1, 4, 7, 8, 19})
      for (int64_t out : {1, 4, 6}) test_row_maps<double>(rows, in, out, 0), test_row_maps<float>(rows, in, out, 1);
  test_sums_over_neighbours();
  for (uint32_t seed = 0; seed < 5; ++seed)
    for (int rows : {1, 2, 9, 70})
      for (int cols : {1, 2, 5, 32, 33, 64, 65, 128, 129, 150}) test_warm_starts(rows, cols, seed);
  alarm(0);
  std::puts("the core keeps its promises");
}

// Feeds the core problems of arbitrary sizes, weights and numbers, spoilt ones included, and checks what it returns.
#include <atomic>
#include <stdexcept>

#include "checks.hpp"
#include "validate.hpp"

namespace tfgw::test {
namespace {

// Stops after a number of polls that the input decides.
class Limited : public Interrupt {
 public:
  explicit Limited(int polls) : left_(polls) {}

 protected:
  bool requested() override { return left_-- <= 0; }

 private:
  std::atomic<int> left_;
};

// What Python does before a solve: false if the problem was refused.
bool accepted(RandomProblem& p) {
  try {
    p.ptr = graph_offsets(p.batch.data(), p.nodes(), p.graphs());
    int64_t entries = 0;
    for (int64_t b = 0; b < p.graphs(); ++b) entries += (p.ptr[b + 1] - p.ptr[b]) * (p.ptr[b + 1] - p.ptr[b]);
    if (p.kind == StructureKind::dense && entries != int64_t(p.dense.size())) return false;
    validate(p.templates_input(), 1e-6);
    validate(p.graphs_input(), 1e-6);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

void run(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  RandomProblem p = make_problem(bytes, Values(bytes.below(3)));
  const bool spoilt = bytes.one_in(3);
  if (spoilt) spoil(p, bytes);
  if (!accepted(p)) {
    CHECK(spoilt);
    return;
  }
  if (spoilt) p.values = Values::extreme;
  Solved solved(p);
  Limited interrupt(bytes.one_in(8) ? bytes.below(20) : 1 << 30);
  const PreparedBatch batch(p.graphs_input(), p.templates_input(), p.threads);
  const double* start = p.start.empty() ? nullptr : p.start.data();
  if (!solve_batch(batch, p.options, start, p.threads, interrupt, solved.output())) return;
  if (!spoilt) check_solved(p, solved);
  Gradients gradients(p);
  const std::vector<double> ones(solved.distance.size(), 1.0);
  backward_batch(batch, solved.pairs(), ones.data(), p.threads, gradients.output());
  check_gradients(p, solved, gradients);
}

}  // namespace
}  // namespace tfgw::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tfgw::test::run(data, size);
  return 0;
}

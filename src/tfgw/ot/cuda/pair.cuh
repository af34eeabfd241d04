// One pair, as every warp that works on it sees it, and what they do together: whatever goes over whole matrices.
#pragma once

#include "beginning.cuh"
#include "block.cuh"
#include "pricing.cuh"
#include "results.cuh"
#include "workspace.cuh"

namespace tfgw {

// A pair that has room in shared memory, and one that has not, or whose structure is directed or given as a matrix.
template <int P, int W, int kWarps>
struct Near {
  using Tree = FlatTree<P, W>;
  using Team = tfgw::Team<kWarps>;
  using Memory = Workspace<P, true>;
  using Arena = NearArena;
  static constexpr bool kNear = true;
};
template <int P, int kWarps>
struct Far {
  using Tree = CoreTree<P>;
  using Team = tfgw::Team<kWarps>;
  using Memory = Workspace<P, false>;
  using Arena = FarArena;
  static constexpr bool kNear = false;
};

// What the leader of a team can ask for. Its own part in prices is another one (FgwSolver::price).
enum class Task {
  load, gradient_and_prices, cross_of_plan, cross_of_iterate, merge, write, done,
};

// A plan that is not the basis' own: hh̄ᵀ, or one that was given.
enum class Base { product, given, vertex };

// What tells a pair from others.
struct Frame {
  int b, k, cols;
  int packed;                  // entries of its structure that have room in shared memory
  bool near;
  double alpha;
  GraphView graph;
  int rows_at_once;            // that are priced together
  int shared_at, shared_size;  // where its part of the block's shared memory begins, in bytes
  char* global;
};

// A block's memory, besides that of its pairs, which comes behind it.
template <int P>
struct alignas(16) BlockMemory {
  Problem problem;           // the kernel's parameter
  int item;                  // that the block solves next
  Frame frame[kBlockWarps];  // of the pair of each warp on its own; the first one if all have the same
  int task, which;           // what the leader asks for
  double number;
  double lowest[kBlockWarps][P];  // what each warp answers
  int row[kBlockWarps][P];
  u32 atoms[kBlockWarps];    // in use, and the factor of each, for each leader
  double factor[kBlockWarps][kMaxAtoms];
};

// At the beginning of shared memory, which every function knows.
template <int P>
TFGW_DEVICE BlockMemory<P>& block_memory() {
  return *reinterpret_cast<BlockMemory<P>*>(dynamic_memory());
}

template <class Kind>
class Pair {
  using Tree = typename Kind::Tree;
  using Team = typename Kind::Team;
  using Memory = typename Kind::Memory;
  static constexpr bool kNear = Kind::kNear;
  static constexpr int P = Tree::kColumns;

 public:
  static constexpr int kKeep = -2;  // for `rebuild_gradient`: as it is

  TFGW_DEVICE Pair() : Pair(block_memory<P>(), block_memory<P>().frame[leader()]) {}

  // The leader among the block's warps.
  TFGW_DEVICE static int leader() { return Team::kAlone ? thread_in_block() / 32 : 0; }

  TFGW_DEVICE void carry_out(Task task, int which, double number) {
    switch (task) {
      case Task::load: return load();
      case Task::gradient_and_prices:
        if constexpr (!Team::kAlone) rebuild_gradient(which), Team::meet(), help_pricing();
        return;
      case Task::cross_of_plan: return cross_of_plan(which);
      case Task::cross_of_iterate: return cross_of_iterate();
      case Task::merge: return merge_base(Base(which), number);
      case Task::write: return PairWriter<P, Team>(p, graph, b, k, alpha, potentials()).write_plan(w.gradient);
      case Task::done: return;
    }
  }

  // Of what is in `memory.factor`; the cross term of atom `newest` is in `new_cross`.
  TFGW_DEVICE void rebuild_gradient(int newest) {
    if (newest == kKeep) return;
    const double* const linear = begin().linear;
    sum_atoms(newest, [&](int e) { return linear[e]; }, [&](int e, double v) { w.gradient[e] = v; });
  }

  TFGW_DEVICE double h(int i) const { return read_only(p.h + graph.first + i); }
  TFGW_DEVICE double t_h(int l) const { return l < m ? read_only(p.t_h + i64(k) * P + l) : 0.0; }
  TFGW_DEVICE int live(int l) const { return read_only(p.live + i64(k) * P + l); }
  TFGW_DEVICE typename Tree::View published() const { return {tree_memory, m, w.row_arrays}; }
  TFGW_DEVICE Pricing<Tree, Team> pricing() const { return {n, rows_at_once, w.gradient, published()}; }
  TFGW_DEVICE Beginning begin() const { return beginning_of(p, graph, b, k); }
  // Nothing else needs the linear cost and the cross term at the end.
  TFGW_DEVICE Potentials potentials() const { return {begin().linear, w.new_cross}; }

  const Problem& p;
  BlockMemory<P>& memory;
  const int b, k, n, m, rows_at_once;
  const double alpha;
  const GraphView graph;
  typename Tree::Memory* const tree_memory;
  const Memory w;

 private:
  TFGW_DEVICE Pair(BlockMemory<P>& block, const Frame& frame)
      : Pair(block, frame,
             typename Kind::Arena(dynamic_memory() + frame.shared_at, frame.shared_size, frame.global)) {}
  TFGW_DEVICE Pair(BlockMemory<P>& block, const Frame& frame, typename Kind::Arena arena)
      : p(block.problem), memory(block), b(frame.b), k(frame.k), n(frame.graph.n), m(frame.cols),
        rows_at_once(frame.rows_at_once), alpha(frame.alpha), graph(frame.graph),
        tree_memory(arena.template take<typename Tree::Memory>(1)),
        w(arena, frame.graph.n, frame.cols, frame.packed),
        cross_(block.problem, graph, frame.k, frame.cols, w.gradient, w.half, w.near) {}

  // Prices its share of the rows each time that the leader asks for it, until that has enough.
  TFGW_DEVICE void help_pricing() {
    auto pricing = this->pricing();
    const int warp = Team::warp();
#pragma unroll 1
    while (true) {
      Team::meet();
      if (memory.which < 0) return;
      const auto found = pricing.price(memory.which, memory.number);
#pragma unroll
      for (int q = 0; q < Shape<P>::kColumnsPerLane; ++q) {
        const int k = lane() + 32 * q;
        if (k < P) memory.lowest[warp][k] = found.lowest[q], memory.row[warp][k] = found.row[q];
      }
      Team::meet();
    }
  }

  // What is read often comes near, and the first plan, if there is one, gets its place among the atoms.
  TFGW_DEVICE void load() {
    if constexpr (kNear) load_structure<P, Team>(p, graph, b, k, m, w.near);
    const Beginning from = begin();
    const auto both = [&](int e) { return Pairwise{from.gradient[e], first_cross(from, e)}; };
    ahead<4>(Team::thread(), n * P, Team::kThreads, both, [&](int e, const Pairwise& v) {
      w.gradient[e] = v.gradient;
      if (alpha > 0) w.new_cross[e] = w.cross(0)[e] = v.cross;
    });
    if (!p.start || alpha <= 0) return;
    for (int e = Team::thread(); e < n * P; e += Team::kThreads) w.given[e] = from.given[e];
  }
  struct Pairwise {
    double gradient, cross;
  };
  TFGW_DEVICE double first_cross(const Beginning& from, int e) const {
    return alpha <= 0 ? 0.0 : p.start ? from.cross[e] : product_cross<P>(p, graph.first + e / P, k, e % P);
  }

  // visit(e, from(e) + Σ factor · cross term), over all atoms in use. That of the newest is near, those of others are far:
  // two of them are on their way at a time.
  template <class From, class Visit>
  TFGW_DEVICE void sum_atoms(int newest, From from, Visit visit) {
    constexpr int kAhead = !Team::kAlone ? 8 : P < 32 ? 2 : 4;
    const double* const factor = memory.factor[leader()];
    u32 others = memory.atoms[leader()];
    double of_newest = 0;
    if (newest >= 0 && (others >> newest & 1)) of_newest = factor[newest], others &= ~(u32(1) << newest);
#pragma unroll 1
    for (int first = Team::thread(); first < n * P; first += kAhead * Team::kThreads) {
      double sum[kAhead];
      int at[kAhead];
#pragma unroll
      for (int s = 0; s < kAhead; ++s) {
        at[s] = first + s * Team::kThreads < n * P ? first + s * Team::kThreads : first;
        sum[s] = from(at[s]);
      }
#pragma unroll 1
      for (u32 left = others; left;) {
        const int one = lowest_bit(left);
        left &= left - 1;
        const double of_one = factor[one];
        const double* const X = w.cross(one);
        double x[kAhead], y[kAhead] = {};
#pragma unroll
        for (int s = 0; s < kAhead; ++s) x[s] = X[at[s]];
        double of_two = 0;
        if (left) {
          const int two = lowest_bit(left);
          left &= left - 1;
          of_two = factor[two];
          const double* const Y = w.cross(two);
#pragma unroll
          for (int s = 0; s < kAhead; ++s) y[s] = Y[at[s]];
        }
#pragma unroll
        for (int s = 0; s < kAhead; ++s) sum[s] += of_one * x[s] + of_two * y[s];
      }
#pragma unroll
      for (int s = 0; s < kAhead; ++s) {
        if (newest >= 0) sum[s] += of_newest * w.new_cross[at[s]];
        if (first + s * Team::kThreads < n * P) visit(at[s], sum[s]);
      }
    }
  }
  // X(T) of the iterate, which becomes atom 0.
  TFGW_DEVICE void cross_of_iterate() {
    sum_atoms(-1, [](int) { return 0.0; }, [&](int e, double v) { w.new_cross[e] = w.cross(0)[e] = v; });
  }

  // X of the newest plan, which is that of atom s, into `new_cross`, and to where it outlives the next atom.
  TFGW_DEVICE void cross_of_plan(int s) {
    double* const kept = w.cross(s);
    const bool symmetric = cross_.halves() == 1;
    for (int half = 0; half < cross_.halves(); ++half) {
      if (cross_.structure_first()) {
        cross_.structure_times_plan(w.new_plan, half, half == 0 ? w.new_cross : w.half);
        Team::meet();
        cross_.times_template(half, w.new_cross, symmetric ? kept : nullptr);
      } else {
        cross_.plan_times_template(w.new_plan, half);
        Team::meet();
        cross_.structure_times(half, w.new_cross, symmetric ? kept : nullptr);
      }
      if (!symmetric) Team::meet();
    }
    if (symmetric) return;
    cross_.average(w.new_cross);
    Team::meet();
#pragma unroll 2
    for (int e = Team::thread(); e < n * P; e += Team::kThreads) kept[e] = w.new_cross[e];
  }
  // The iterate T as a matrix, in the gradient's memory: first what is no vertex, then the vertices.
  TFGW_DEVICE void merge_base(Base kind, double weight) {
    each_entry<P, Team>(n, [&](int e, int i, int k) {
      const double entry = kind == Base::given ? w.given[e] : kind == Base::product ? h(i) * t_h(k) : 0.0;
      w.gradient[e] = weight * entry;
    });
  }
  CrossOperator<P, Team, kNear> cross_;
};

// A function: tasks are asked for in many places, and copies of all of them would be far more code than a multiprocessor
// keeps near.
template <class Kind>
TFGW_FUNCTION void perform(Task task, int which, double number) {
  Pair<Kind>().carry_out(task, which, number);
}

}  // namespace tfgw

// One pair, as every warp that works on it sees it, and what they do together: whatever goes over whole matrices.
#pragma once

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
  using Memory = Workspace<P, true, W <= 3>;
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

// What the leader of a team can ask for.
enum class Task {
  load, product_start, gradient, similarity, peak, scale, add_hops, plan_times_template, matrix_times_template,
  structure_times_plan, structure_times, times_template, average, regrets, order_rows, price, keep_cross, merge, write,
  done,
};

// A plan that is not the basis' own: hh̄ᵀ, or one that was given.
enum class Base { product, given, vertex };

// What tells a pair from others.
struct Frame {
  int b, k, cols, packed;
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
  int places[kBlockWarps][kPlaces];  // of what is near
  int task, which;           // what the leader asks for
  double number;
  double share[kBlockWarps];  // what each warp answers
  double lowest[kBlockWarps][P];
  int row[kBlockWarps][P];
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
  // Which matrix a task is about, and which half of a cross term.
  static constexpr int kSecondHalf = 1, kGiven = 2, kAtom = 4;  // kAtom (s + 1): what results is atom s' cross term
  // Which atom the gradient is to contain, besides its place.
  static constexpr int kFirstAtom = 32, kNewestAtom = 64, kNoAtom = 128;

  TFGW_DEVICE Pair() : Pair(block_memory<P>(), block_memory<P>().frame[leader()]) {}

  // The leader among the block's warps.
  TFGW_DEVICE static int leader() { return Team::kAlone ? thread_in_block() / 32 : 0; }

  // Whether a pair has room in so much shared memory. `places`, if given, get where.
  TFGW_DEVICE static bool has_room(const GraphView& graph, int cols, int packed, int shared_size, int* places) {
    if (graph.n + cols > Tree::kNodes) return false;
    PlaceFinder finder(places);
    finder.take<typename Tree::Memory>(1);
    Memory(finder, graph.n, cols, packed);
    return finder.used() <= shared_size;
  }

  TFGW_DEVICE void carry_out(Task task, int which, double number) {
    switch (task) {
      case Task::load: return load();
      case Task::product_start: return product_start();
      case Task::gradient: return add_to_gradient(which, number);
      case Task::similarity: return similarity();
      case Task::peak: return find_peak(matrix(which));
      case Task::scale: return scale(which, number);
      case Task::add_hops: return add_hops(which, number);
      case Task::plan_times_template: return cross_.plan_times_template(w.new_plan, which);
      case Task::matrix_times_template: return cross_.matrix_times_template(matrix(which), which & kSecondHalf);
      case Task::structure_times_plan: return cross_.structure_times_plan(w.new_plan, which);
      case Task::structure_times: return cross_.structure_times(which & kSecondHalf, matrix(which), kept(which));
      case Task::times_template: return cross_.times_template(which & kSecondHalf, w.new_cross, kept(which));
      case Task::average: return cross_.average(matrix(which));
      case Task::regrets: return pricing().compute_regrets();
      case Task::order_rows: return pricing().order_rows();
      case Task::price: return answer(pricing().price(which, number));
      case Task::keep_cross: return keep_cross(which);
      case Task::merge: return merge_base(Base(which), number);
      case Task::write: return PairWriter<P, Team>(p, graph, b, k, alpha, potentials()).write_plan(w.gradient);
      case Task::done: return;
    }
  }

  TFGW_DEVICE double h(int i) const { return read_only(p.h + graph.first + i); }
  TFGW_DEVICE double t_h(int l) const { return l < m ? read_only(p.t_h + i64(k) * P + l) : 0.0; }
  TFGW_DEVICE int live(int l) const { return read_only(p.live + i64(k) * P + l); }
  TFGW_DEVICE int halves() const { return cross_.halves(); }
  TFGW_DEVICE bool structure_first() const { return cross_.structure_first(); }
  TFGW_DEVICE typename Tree::View published() const { return {tree_memory, m, w.row_arrays}; }
  TFGW_DEVICE FirstBasis first_basis() const {
    return {w.regret, w.supply, w.order, reinterpret_cast<u64*>(w.new_cross)};
  }
  TFGW_DEVICE Pricing<Tree, Team> pricing() const {
    return {n, m, rows_at_once, w.gradient, published(), first_basis()};
  }
  // Nothing else needs the linear cost and the cross term at the end.
  TFGW_DEVICE Potentials potentials() const { return {w.linear, w.new_cross}; }

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
             {dynamic_memory() + frame.shared_at, frame.shared_size, block.places[leader()], frame.global}) {}
  TFGW_DEVICE Pair(BlockMemory<P>& block, const Frame& frame, typename Kind::Arena arena)
      : p(block.problem), memory(block), b(frame.b), k(frame.k), n(frame.graph.n), m(frame.cols),
        rows_at_once(frame.rows_at_once), alpha(frame.alpha), graph(frame.graph),
        tree_memory(arena.template take<typename Tree::Memory>(1)),
        w(arena, frame.graph.n, frame.cols, frame.packed),
        cross_(block.problem, graph, frame.k, frame.cols, w.gradient, w.half, w.near) {}

  TFGW_DEVICE double* matrix(int which) const {
    if constexpr (kNear) return w.new_cross;
    return which & kGiven ? w.given : w.new_cross;
  }

  // It must outlive the next atom.
  TFGW_DEVICE double* kept(int which) const { return which < kAtom ? nullptr : w.cross(which / kAtom - 1); }

  template <class Visit>
  TFGW_DEVICE void each_entry(Visit visit) const {  // visit(entry, row, column), each thread its own
    static_assert(Team::kThreads % P == 0, "a thread stays in its column");
    const int k = Team::thread() % P;
#pragma unroll 2
    for (int i = Team::thread() / P; i < n; i += Team::kThreads / P) visit(i * P + k, i, k);
  }

  // For the leader.
  TFGW_DEVICE void answer(double share) const {
    if (lane() == 0) memory.share[thread_in_block() / 32] = share;
  }
  TFGW_DEVICE void answer(const typename Pricing<Tree, Team>::Found& found) const {
    const int warp = thread_in_block() / 32;
#pragma unroll
    for (int q = 0; q < Shape<P>::kColumnsPerLane; ++q) {
      const int k = lane() + 32 * q;
      if (k < P) memory.lowest[warp][k] = found.lowest[q], memory.row[warp][k] = found.row[q];
    }
  }

  // What is read often comes near. (1−α) M; at α = 1 features play no role and may be anything finite.
  TFGW_DEVICE void load() {
    for (int i = Team::thread(); i < n; i += Team::kThreads) w.supply[i] = read_only(p.supply + graph.first + i);
    if constexpr (kNear) load_structure();
    if (p.cost) {
      each_entry([&](int e, int i, int k) {
        const double* const row = p.cost + (i64(graph.first + i) * p.templates + this->k) * p.columns;
        w.linear[e] = k < m ? read_only(row + live(k)) : kPadCost;
      });
    } else {
      squared_distances();
    }
  }

  TFGW_DEVICE void load_structure() {
    if (!has_structure(p)) return;
    const double* const table = p.mean + i64(this->k) * P * P;
#pragma unroll 4
    for (int e = Team::thread(); e < m * P; e += Team::kThreads) w.near.table[e] = read_only(table + e);
    if (graph.dense) return;
    const int groups = (n + Shape<P>::kGroup - 1) / Shape<P>::kGroup;
    const int* const begin = packed_begin(p, b);
    for (int g = Team::thread(); g <= groups; g += Team::kThreads) w.near.begin[g] = read_only(begin + g);
    for (int i = Team::thread(); i < n; i += Team::kThreads) w.near.row[i] = read_only(p.packed_row + graph.first + i);
    const Entry* const packed = p.packed + packed_at(p, graph.first);
    const int count = read_only(begin + groups);
#pragma unroll 4
    for (int e = Team::thread(); e < count; e += Team::kThreads) w.near.packed[e] = read_only(packed + e);
  }

  TFGW_DEVICE void squared_distances() {
    constexpr int kTogether = Shape<P>::kRowsAtOnce, kGroup = Shape<P>::kGroup;
    constexpr int kRowsEach = kGroup / kTogether;  // rows that share what is read of the template
    const int d = alpha < 1 ? int(p.features) : 0;
    for (int k = lane() % P; k < P; k += 32) {
      const double* const there = p.ft + i64(this->k) * p.features * P + k;
      for (int first = Team::warp() * kGroup + Shape<P>::my_row(); first < n; first += kGroup * Team::kSize) {
        const double* x[kRowsEach];
        double sum[kRowsEach] = {};
#pragma unroll
        for (int s = 0; s < kRowsEach; ++s) {
          const int i = first + s * kTogether;
          x[s] = p.x + i64(graph.first + (i < n ? i : first)) * p.features;
        }
#pragma unroll 4
        for (int c = 0; c < d; ++c) {
          const double f = read_only(there + c * P);
#pragma unroll
          for (int s = 0; s < kRowsEach; ++s) {
            const double difference = read_only(x[s] + c) - f;
            sum[s] += difference * difference;
          }
        }
#pragma unroll
        for (int s = 0; s < kRowsEach; ++s) {
          const int i = first + s * kTogether;
          if (i < n) w.linear[i * P + k] = k < m ? (1 - alpha) * sum[s] : kPadCost;
        }
      }
    }
  }

  // X(hh̄ᵀ) = ½ (Ch (C̄h̄)ᵀ + Cᵀh (C̄ᵀh̄)ᵀ), and the linear cost.
  TFGW_DEVICE void product_start() {
    double linear = 0;
    each_entry([&](int e, int i, int k) {
      const int node = graph.first + i;
      const i64 at = i64(this->k) * P + k;
      const double out = read_only(p.out_mean + node) * read_only(p.t_mean_out + at);
      const double x = 0.5 * (out + read_only(p.in_mean + node) * read_only(p.t_mean_in + at));
      w.new_cross[e] = x, w.cross(0)[e] = x;
      if (k < m) linear += h(i) * t_h(k) * w.linear[e];
    });
    answer(warp_sum(linear));
  }

  TFGW_DEVICE void add_to_gradient(int which, double factor) {
    const auto add = [&](const double* X) {
      const double* const from = which & kFirstAtom ? w.linear : w.gradient;
      const auto sum = [&](int e) { return from[e] + factor * X[e]; };
      ahead<4>(Team::thread(), n * P, Team::kThreads, sum, [&](int e, double v) { w.gradient[e] = v; });
    };
    if (which & kNoAtom) add(w.linear);
    else if (which & kNewestAtom) add(w.new_cross);
    else add(w.cross(which & 31));
  }

  TFGW_DEVICE void similarity() {
    double largest = 0;
    each_entry([&](int e, int i, int k) {
      if (k < m) largest = larger(largest, magnitude(w.gradient[e]));
      const double norms = read_only(p.x_norm + graph.first + i) + read_only(p.t_norm + i64(this->k) * P + k);
      w.new_cross[e] = k < m ? 0.5 * ((1 - alpha) * norms - w.linear[e]) + alpha : 0.0;
    });
    answer(warp_max(largest));
  }
  TFGW_DEVICE void find_peak(const double* S) {
    double peak = 0;
    each_entry([&](int e, int, int k) {
      if (k < m) peak = larger(peak, magnitude(S[e]));
    });
    answer(warp_max(peak));
  }
  // No atom is so far back yet: its place keeps what a hop has found.
  TFGW_DEVICE double* hop(int number) const { return w.cross(kMaxAtoms - 1 - number); }
  TFGW_DEVICE void scale(int which, double by) {
    double *const S = matrix(which), *const out = hop(which / kAtom);
    each_entry([&](int e, int, int) { out[e] = S[e] *= by; });
  }
  TFGW_DEVICE void add_hops(int count, double factor) {
    for (int s = 0; s < count; ++s) {
      const double* const S = hop(s);
      const auto sum = [&](int e) { return w.gradient[e] - factor * S[e]; };
      ahead<4>(Team::thread(), n * P, Team::kThreads, sum, [&](int e, double v) { w.gradient[e] = v; });
    }
  }

  // What is in `new_cross` belongs to atom s; it must outlive the next atom.
  TFGW_DEVICE void keep_cross(int s) {
    double* const to = w.cross(s);
#pragma unroll 2
    for (int e = Team::thread(); e < n * P; e += Team::kThreads) to[e] = w.new_cross[e];
  }
  // The iterate T as a matrix, in the gradient's memory: first what is no vertex, then the vertices.
  TFGW_DEVICE void merge_base(Base kind, double weight) {
    each_entry([&](int e, int i, int k) {
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

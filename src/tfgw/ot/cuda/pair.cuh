// One pair as seen by every warp that works on it, and the operations on whole matrices, which the warps share.
#pragma once

#include "initial_state.cuh"
#include "block.cuh"
#include "pricing.cuh"
#include "results.cuh"
#include "transport.cuh"
#include "wide_tree.cuh"
#include "workspace.cuh"

namespace tfgw {

// Up to this many words per mask, a single warp of the team holds the basis. Such pairs may also be solved by one warp,
// and sums over arcs are then rounded identically. For them, a barrier per pivot costs as much as it saves.
constexpr int kOneWarpWords = 3;

// Kinds of pairs: in shared memory, and in global memory. Directed and dense structures are always of the second kind.
template <int P, int W, int kWarps, int kAtomsInShared = kSharedAtoms, bool kCross = true, bool kTableInShared = true>
struct Shared {
  static constexpr int kAtoms = kAtomsInShared;
  using Team = tfgw::Team<kWarps>;
  using Tree = FlatTree<P, W, tfgw::Team<(W > kOneWarpWords ? kWarps : 1)>>;
  using Memory = Workspace<P, true, kAtoms, kCross, kTableInShared>;
  using Arena = SharedArena;
  static constexpr bool kShared = true, kTable = kTableInShared;
};
template <int P, int kWarps>
struct Global {
  static constexpr int kAtoms = kSharedAtoms;
  using Team = tfgw::Team<kWarps>;
  using Tree = typename GlobalTree<P>::Tree;
  using Memory = Workspace<P, false>;
  using Arena = SpillArena;
  static constexpr bool kShared = false, kTable = false;
};

// Kinds of atoms: hh̄ᵀ, a plan given by the caller, or a vertex (a basis of the simplex).
enum class Base { product, given, vertex };

// Description of a pair, in shared memory to save registers.
struct Frame {
  int b, k, cols;
  int packed;                  // entries of its structure in shared memory
  bool in_shared;              // whether its data is in shared memory
  bool has_cross, has_table;   // and also its newest cross term and the template's table
  double alpha;
  double structure_scale;      // α (hᵀ C² h + h̄ᵀ C̄² h̄)
  GraphView graph;
  int rows_at_once;            // rows that are priced together
  int shared_at, shared_size;  // its part of the block's shared memory, in bytes
  char* global;
  double* linear;              // its linear cost (initial_state.cuh)
};

// The part of a block's shared memory that precedes its pairs.
template <int P>
struct alignas(16) BlockMemory {
  Problem problem;           // the kernel's parameter
  int item;                  // index in the queue of the block's next pair
  Frame frame[kBlockWarps];  // by warp; only the first if all warps share a pair
  // Exchanged between the warps of a team.
  double lowest[kBlockWarps][P];
  int row[kBlockWarps][P];
  double sums[kBlockWarps][8];
  LeaderState leader_state;
  // By warp: the factor of each atom, and the reduced cost that the last linear problem took for rounding.
  double factor[kBlockWarps][kMaxAtoms];
  double ignored[kBlockWarps];
};

// At the start of shared memory, so that noinline functions find it.
template <int P>
TFGW_DEVICE BlockMemory<P>& block_memory() {
  return *reinterpret_cast<BlockMemory<P>*>(dynamic_shared_memory());
}

template <class Kind>
class Pair {
  using Tree = typename Kind::Tree;
  using Team = typename Kind::Team;
  using Memory = typename Kind::Memory;
  static constexpr bool kShared = Kind::kShared;
  static constexpr int P = Tree::kColumns;

 public:
  TFGW_DEVICE Pair()
      : Pair(block_memory<P>(), block_memory<P>().frame[Team::kSingleWarp ? thread_in_block() / 32 : 0]) {}

  // Copies frequently read data to shared memory. The first plan, if any, becomes an atom.
  TFGW_DEVICE void load() {
    const InitialState from = begin();
    if constexpr (kShared) load_structure<P, Team, Kind::kTable>(p, frame.graph, frame.b, frame.k, m, w.shared);
    load_gradient(from.gradient);
    if (frame.alpha > 0) {
      each_own_column<P, Team>([&](int col, int top, int step) {
        const ProductCross<P> product(p, frame.graph, frame.k, col);
        const auto first = [&](int i) { return p.start ? from.cross[i * P + col] : product.at(i); };
        unrolled<4>(top, n, step, first,
                 [&](int i, double x) { w.new_cross[i * P + col] = w.cross(0)[i * P + col] = x; });
      });
    }
    for (int e = Team::thread(); e < n * P && frame.alpha > 0 && p.start; e += Team::kThreads)
      w.given[e] = from.given[e];
    wait_for_copies();
    find_places();
  }

  // Copies only the structures, and a cost instead of the first gradient.
  TFGW_DEVICE void load(const double* cost) {
    if constexpr (kShared) load_structure<P, Team, Kind::kTable>(p, frame.graph, frame.b, frame.k, m, w.shared);
    load_gradient(cost);
    wait_for_copies();
    find_places();
  }

  // Prefetches the linear cost into the gradient's memory. Each thread copies only what it will read.
  TFGW_DEVICE void fetch_linear() {
    if constexpr (!kShared) return;
    const double* const from = frame.linear;
#pragma unroll 1
    for (int e = 2 * Team::thread(); e < n * P; e += 2 * Team::kThreads)
      copy_async(as_double2(w.gradient + e), as_double2(from + e));
  }
  // The gradient at Σ factor · atom, after `fetch_linear`; the cross term of atom `newest` is in `new_cross`.
  TFGW_DEVICE void rebuild_gradient(u32 atoms, int newest) {
    const double* const from = kShared ? w.gradient : frame.linear;
    wait_for_copies();
    sum_atoms(atoms, newest, [&](int e) { return *as_double2(from + e); },
              [&](int e, Double2 v) { *as_double2(w.gradient + e) = v; });
  }

  // X(T) of the iterate, which becomes atom 0.
  TFGW_DEVICE void cross_of_iterate(u32 atoms) {
    sum_atoms(atoms, -1, [](int) { return Double2{}; },
              [&](int e, Double2 v) { *as_double2(w.new_cross + e) = *as_double2(w.cross(0) + e) = v; });
  }

  // X of the newest plan, that of atom s, into `new_cross` and into the atom's own memory.
  TFGW_DEVICE void cross_of_plan(int s) {
    double* const kept = w.cross(s);
    const bool symmetric = cross_.halves() == 1;
    for (int half = 0; half < cross_.halves(); ++half) {
      cross_.structure_times_plan(w.new_plan, half, half == 0 ? w.new_cross : w.half);
      Team::sync();
      cross_.times_template(half, w.new_cross, symmetric ? kept : nullptr);
      if (!symmetric) Team::sync();
    }
    if (symmetric) return;
    cross_.average(w.new_cross);
    Team::sync();
#pragma unroll 2
    for (int e = Team::thread(); e < n * P; e += Team::kThreads) kept[e] = w.new_cross[e];
  }

  // The iterate T as a matrix, in the gradient's memory: the base plan first; `add_plans` adds the vertices.
  TFGW_DEVICE void merge_base(Base kind, double weight) {
    each_entry<P, Team>(n, [&](int e, int i, int k) {
      const double entry = kind == Base::given ? w.given[e] : kind == Base::product ? h(i) * t_h(k) : 0.0;
      w.gradient[e] = weight * entry;
    });
  }

  TFGW_DEVICE void write_plan() {
    PairWriter<P, Team>(p, frame.graph, frame.b, frame.k, frame.alpha, potentials()).write_plan(w.gradient);
  }

  // Candidates for entering arcs in the rows from `first` on, by column, combined over all warps.
  TFGW_DEVICE Candidates<Shape<P>::kColumnsPerLane> price(int first, double eps) {
    auto found = pricing().price(first, eps);
    if constexpr (!Team::kSingleWarp) {
      const int warp = Team::warp();
#pragma unroll
      for (int q = 0; q < Shape<P>::kColumnsPerLane; ++q) {
        const int k = lane() + 32 * q;
        if (k < P) memory.lowest[warp][k] = found.lowest[q], memory.row[warp][k] = found.row[q];
      }
      Team::sync();
#pragma unroll
      for (int q = 0; q < Shape<P>::kColumnsPerLane; ++q) {
        const int k = (lane() + 32 * q) % P;
        found.lowest[q] = memory.lowest[0][k], found.row[q] = memory.row[0][k];
#pragma unroll
        for (int w = 1; w < Team::kSize; ++w) keep_lower(found, q, memory.lowest[w][k], memory.row[w][k]);
      }
    }
    return found;
  }

  // Sums over the warps of the team; the lanes of a warp have equal values.
  template <class... Doubles>
  TFGW_DEVICE void add_over_team(Doubles&... v) {
    if constexpr (!Team::kSingleWarp) {
      static_assert(sizeof...(v) <= sizeof(memory.sums[0]) / sizeof(double));
      int at = 0;
      if (lane() == 0) ((memory.sums[Team::warp()][at++] = v), ...);
      Team::sync();
      at = 0;
      ((v = total(at++)), ...);
      Team::sync();
    }
  }

  TFGW_DEVICE double h(int i) const { return read_only(p.h + frame.graph.first + i); }
  TFGW_DEVICE double t_h(int l) const { return l < m ? read_only(p.t_h + i64(frame.k) * P + l) : 0.0; }
  TFGW_DEVICE int live(int l) const { return read_only(p.live + i64(frame.k) * P + l); }
  TFGW_DEVICE typename Tree::View published() const { return {tree_memory, m, w.row_arrays}; }
  TFGW_DEVICE Pricing<Tree, Team> pricing() const { return {n, frame.rows_at_once, w.gradient, published()}; }
  TFGW_DEVICE InitialState begin() const { return initial_state_of(p, frame.graph, frame.b, frame.k); }
  // At the end, the memory of the linear cost and of the newest cross term is free.
  TFGW_DEVICE Potentials potentials() const { return {frame.linear, w.new_cross}; }

  const Problem& p;
  BlockMemory<P>& memory;
  const Frame& frame;
  const int n, m;
  typename Tree::Memory* const tree_memory;
  const Memory w;

 private:
  TFGW_DEVICE Pair(BlockMemory<P>& block, const Frame& frame)
      : Pair(block, frame,
             typename Kind::Arena(dynamic_shared_memory() + frame.shared_at, frame.shared_size, frame.global)) {}
  TFGW_DEVICE Pair(BlockMemory<P>& block, const Frame& frame, typename Kind::Arena arena)
      : p(block.problem), memory(block), frame(frame), n(frame.graph.n), m(frame.cols),
        tree_memory(arena.template take<typename Tree::Memory>(1)),
        w(arena, frame.graph.n, frame.cols, frame.packed),
        cross_(block.problem, frame.graph, frame.k, frame.cols, w.gradient, w.half, w.shared) {}

  TFGW_DEVICE void load_gradient(const double* from) {
#pragma unroll 1
    for (int e = 2 * Team::thread(); e < n * P; e += 2 * Team::kThreads) {
      if constexpr (kShared) copy_async(as_double2(w.gradient + e), as_double2(from + e));
      else *as_double2(w.gradient + e) = *as_double2(from + e);
    }
  }

  TFGW_DEVICE void find_places() {
    if constexpr (kShared) {
      if (!has_structure(p) || frame.graph.dense) return;
      for (int at = Team::thread(); at < n; at += Team::kThreads)
        w.shared.place[w.shared.row[at]] = at;  // each thread reads only what it has copied
    }
  }

  TFGW_DEVICE double total(int at) const {
    double sum = memory.sums[0][at];
#pragma unroll
    for (int w = 1; w < Team::kSize; ++w) sum += memory.sums[w][at];
    return sum;
  }

  // visit(e, from(e) + Σ factor · cross term), over all atoms in use, for every second e: two numbers each. The cross
  // term of the newest atom is in shared memory; the others are in global memory and loaded two at a time.
  template <class From, class Visit>
  TFGW_DEVICE void sum_atoms(u32 others, int newest, From from, Visit visit) {
    constexpr int kUnroll = !Team::kSingleWarp ? 4 : P < 32 ? 2 : 4;
    const double* const factor = memory.factor[thread_in_block() / 32];
    double of_newest = 0;
    if (newest >= 0 && (others >> newest & 1)) of_newest = factor[newest], others &= ~(u32(1) << newest);
    const int end = n * P;
#pragma unroll 1
    for (int first = 2 * Team::thread(); first < end; first += 2 * kUnroll * Team::kThreads) {
      Double2 sum[kUnroll];
      int at[kUnroll];
#pragma unroll
      for (int s = 0; s < kUnroll; ++s) {
        at[s] = first + 2 * s * Team::kThreads < end ? first + 2 * s * Team::kThreads : first;
        sum[s] = from(at[s]);
      }
#pragma unroll 1
      for (u32 left = others; left;) {
        const int one = lowest_bit(left);
        left &= left - 1;
        const double of_one = factor[one];
        const double* const X = w.cross(one);
        Double2 x[kUnroll], y[kUnroll] = {};
#pragma unroll
        for (int s = 0; s < kUnroll; ++s) x[s] = *as_double2(X + at[s]);
        double of_two = 0;
        if (left) {
          const int two = lowest_bit(left);
          left &= left - 1;
          of_two = factor[two];
          const double* const Y = w.cross(two);
#pragma unroll
          for (int s = 0; s < kUnroll; ++s) y[s] = *as_double2(Y + at[s]);
        }
#pragma unroll
        for (int s = 0; s < kUnroll; ++s) {
          sum[s].x += fma_rn(of_one, x[s].x, of_two * y[s].x);
          sum[s].y += fma_rn(of_one, x[s].y, of_two * y[s].y);
        }
      }
#pragma unroll
      for (int s = 0; s < kUnroll; ++s) {
        if (newest >= 0) {
          const Double2 x = *as_double2(w.new_cross + at[s]);
          sum[s].x += of_newest * x.x, sum[s].y += of_newest * x.y;
        }
        if (first + 2 * s * Team::kThreads < end) visit(at[s], sum[s]);
      }
    }
  }
  CrossOperator<P, Team, kShared, Kind::kTable> cross_;
};

}  // namespace tfgw

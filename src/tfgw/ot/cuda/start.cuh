// Kernel `start`: the initial state of each pair's solve, that is, the linear cost, the gradient at the first plan with
// its ties broken, and the first basis. All of it is work on whole matrices, and all warps of a block work on one pair.
#pragma once

#include "cross.cuh"
#include "first_basis.cuh"
#include "results.cuh"
#include "workspace.cuh"

namespace tfgw {

// Optional arrays that also fit into shared memory.
struct StartRoom {
  bool matrix = false, packed = false, gradient = false;
};

template <int P, bool kShared>
struct StartMemory {
  template <class Arena>
  TFGW_DEVICE StartMemory(Arena& arena, int rows, int cols, int packed, const StartRoom& room) {
    first.regret = arena.template take<double>(rows), first.supply = arena.template take<i64>(rows);
    first.order = arena.template take<int>(rows);
    product = arena.template take<double>(rows * kPitch<P>);
    if constexpr (kShared) {
      shared.take(arena, rows, cols, room.packed ? packed : 0, kPitch<P>, Shape<P>::groups(rows));
      matrix = room.matrix ? arena.template take<double>(rows * P) : arena.template take_global<double>(rows * P);
      if (room.gradient) gradient = arena.template take<double>(rows * P);
    } else {
      matrix = arena.template take<double>(rows * P);
      other = arena.template take<double>(rows * P), half = arena.template take<double>(rows * P);
    }
    first.centred = reinterpret_cast<u64*>(product);
  }
  TFGW_DEVICE static i64 size(int rows) { return i64(rows) * (4 * P + 7) + 16; }  // in doubles

  FirstBasisMemory first;
  double *matrix, *product, *other = nullptr, *half = nullptr;  // (rows, P)
  double* gradient = nullptr;
  SharedStructure shared{};
};

template <int P, bool kShared, class Team>
class Start {
  using Memory = StartMemory<P, kShared>;

 public:
  // `share` has one double per warp.
  template <class Arena>
  TFGW_DEVICE Start(const Problem& p, const GraphView& graph, int b, int k, int packed, const StartRoom& room,
                    double* share, Arena arena)
      : p_(p), graph_(graph), b_(b), k_(k), n_(graph.n), m_(p.live_count[k]),
        alpha_(has_structure(p) ? p.alpha[k] : 0.0), share_(share), w_(arena, n_, m_, packed, room),
        begin_(initial_state_of(p, graph, b, k)), gradient_(w_.gradient ? w_.gradient : begin_.gradient),
        cross_(p, graph_, k, m_, w_.product, w_.half, w_.shared) {}

  TFGW_DEVICE void run() {
    const i64* const supply = p_.supply + graph_.first;
    for (int i = Team::thread(); i < n_; i += Team::kThreads) w_.first.supply[i] = read_only(supply + i);
    if constexpr (kShared) load_structure<P, Team, true>(p_, graph_, b_, k_, m_, w_.shared);
    linear_cost();
    wait_for_copies();
    Team::sync();
    if (alpha_ <= 0) {
      each_entry<P, Team>(n_, [&](int e, int, int) { begin_.gradient[e] = w_.product[e] = w_.matrix[e]; });
    } else if (p_.start) {
      from_given();
    } else {
      from_product();
    }
    Team::sync();
    FirstBasis<P, Team> first(n_, m_, w_.first);
    first.compute_regrets(w_.product);
    Team::sync();
    first.order_rows();
    Team::sync();
    if (Team::warp() == 0) first.ship(p_.demand + i64(k_) * P, begin_.arcs);
  }

 private:
  TFGW_DEVICE double h(int i) const { return read_only(p_.h + graph_.first + i); }
  TFGW_DEVICE double t_h(int l) const { return l < m_ ? read_only(p_.t_h + i64(k_) * P + l) : 0.0; }
  TFGW_DEVICE int live(int l) const { return read_only(p_.live + i64(k_) * P + l); }

  // Reductions over the team: the largest value, and the sum.
  TFGW_DEVICE double largest(double mine) const {
    share(warp_max(mine));
    double all = share_[0];
#pragma unroll
    for (int w = 1; w < Team::kSize; ++w) all = larger(all, share_[w]);
    return all;
  }
  TFGW_DEVICE double total(double mine) const {
    share(warp_sum(mine));
    double all = share_[0];
#pragma unroll
    for (int w = 1; w < Team::kSize; ++w) all += share_[w];
    return all;
  }
  TFGW_DEVICE void share(double number) const {
    Team::sync();  // the previous values have been read
    if (lane() == 0) share_[Team::warp()] = number;
    Team::sync();
  }

  // (1−α) M, also in `matrix`. At α = 1 features are irrelevant and may have any finite value.
  TFGW_DEVICE void linear_cost() {
    if (p_.cost) {
      each_entry<P, Team>(n_, [&](int e, int i, int k) {
        const double* const row = p_.cost + (i64(graph_.first + i) * p_.templates + k_) * p_.columns;
        begin_.linear[e] = w_.matrix[e] = k < m_ ? read_only(row + live(k)) : kPadCost;
      });
    } else {
      squared_distances();
    }
  }

  // As many features at a time as fit into `product`.
  TFGW_DEVICE void squared_distances() {
    const int d = alpha_ < 1 ? int(p_.features) : 0, room = n_ * kPitch<P> / (n_ + P);
    double* const there = w_.product;
    double* const here = there + room * P;
    int first = 0;
#pragma unroll 1
    do {
      const int count = d - first < room ? d - first : room;
      const double* const from = p_.ft + (i64(k_) * p_.features + first) * P;
#pragma unroll 1
      for (int e = 2 * Team::thread(); e < count * P; e += 2 * Team::kThreads)
        copy_in(as_double2(there + e), as_double2(from + e));
      const double* const x = p_.x + i64(graph_.first) * p_.features + first;
      const int wide = count ? count : 1, down = Team::kThreads / wide, right = Team::kThreads % wide;
      int i = Team::thread() / wide, c = Team::thread() % wide;  // a node and a feature
#pragma unroll 1
      for (int e = Team::thread(); e < n_ * count; e += Team::kThreads) {
        copy_in(here + e, x + i * p_.features + c);
        i += down, c += right;
        if (c >= count) ++i, c -= count;
      }
      wait_for_copies();
      Team::sync();
      add_squares(there, here, count, first == 0, first + count == d);
      first += count;
      Team::sync();
    } while (first < d);
  }
  template <class T>
  TFGW_DEVICE static void copy_in(T* to, const T* from) {
    if constexpr (kShared) copy_async(to, from);
    else *to = *from;
  }

  // For `count` features: of the template stored by feature, of the graph by node.
  TFGW_DEVICE void add_squares(const double* there, const double* here, int count, bool first, bool last) {
    each_own_column<P, Team>([&](int k, int top, int step) {
      add_squares(there, here, count, first, last, k, top, step);
    });
  }

  // The same in one column, for every `step`-th row.
  TFGW_DEVICE void add_squares(const double* there, const double* here, int count, bool first, bool last, int k,
                               int top, int step) {
    constexpr int kRowsEach = 4;  // rows per load of a template feature
#pragma unroll 1
    for (int row = top; row < n_; row += kRowsEach * step) {
      const double* x[kRowsEach];
      double sum[kRowsEach];
#pragma unroll
      for (int s = 0; s < kRowsEach; ++s) {
        const int i = row + s * step < n_ ? row + s * step : row;
        x[s] = here + i * count, sum[s] = first ? 0.0 : w_.matrix[i * P + k];
      }
#pragma unroll 2
      for (int c = 0; c < count; ++c) {
        const double f = there[c * P + k];
#pragma unroll
        for (int s = 0; s < kRowsEach; ++s) {
          const double difference = x[s][c] - f;
          sum[s] += difference * difference;
        }
      }
#pragma unroll
      for (int s = 0; s < kRowsEach; ++s) {
        const int i = row + s * step, e = i * P + k;
        if (i >= n_) break;
        if (last) begin_.linear[e] = sum[s] = k < m_ ? (1 - alpha_) * sum[s] : kPadCost;
        w_.matrix[e] = sum[s];
      }
    }
  }

  // Starts from hh̄ᵀ, for which everything has a closed form.
  TFGW_DEVICE void from_product() {
    struct Node {
      double cross, h, norm, cost;
    };
    double linear = 0, highest = 0;
    each_own_column<P, Team>([&](int k, int top, int step) {
      const ProductCross<P> cross(p_, graph_, k_, k);
      const double t_mass = t_h(k), t_norm = read_only(p_.t_norm + i64(k_) * P + k);
      const auto node = [&](int i) {
        return Node{cross.at(i), h(i), read_only(p_.x_norm + graph_.first + i), w_.matrix[i * P + k]};
      };
      unrolled<4>(top, n_, step, node, [&](int i, const Node& v) {
        const int e = i * P + k;
        const double cost = v.cost, g = cost + -4 * alpha_ * v.cross;
        gradient_[e] = g;
        if (k < m_) linear += v.h * t_mass * cost, highest = larger(highest, magnitude(g));
        w_.matrix[e] = k < m_ ? tie_similarity(alpha_, v.norm + t_norm, cost) : 0.0;
      });
    });
    linear = total(linear);
    double graph_mean = 0, template_mean = 0;
    for (int i = lane(); i < n_; i += 32) graph_mean += h(i) * p_.out_mean[graph_.first + i];
    for (int k = lane(); k < m_; k += 32) template_mean += t_h(k) * p_.t_mean_out[i64(k_) * P + k];
    warp_sums(graph_mean, template_mean);
    keep_costs(linear, graph_mean * template_mean);
    break_ties(kTieShare * largest(highest));
  }

  // Ties of the first linear problem are broken by the similarity of the two nodes' neighbourhoods:
  // S₀ = (1−α) F F̄ᵀ + α, Sₜ₊₁ ∝ X(Sₜ). S₀ is in `matrix`; on return the gradient is in `product`.
  TFGW_DEVICE void break_ties(double weight) {
    double* now = w_.matrix;
#pragma unroll 1
    for (int hop = 0; hop < kTieHops; ++hop) {
      now = apply(now);
      double peak = 0;
      // A thread stays in its column, if there are not more columns than threads.
      const auto live = [&](int e) { return (P <= Team::kThreads ? Team::thread() : e) % P < m_; };
      unrolled<4>(Team::thread(), n_ * P, Team::kThreads, [&](int e) { return now[e]; },
               [&](int e, double v) { peak = larger(peak, live(e) ? magnitude(v) : 0.0); });
      peak = largest(peak);
      if (peak == 0) break;
      const double scale = 1 / peak;
      const auto both = [&](int e) { return Double2{now[e], gradient_[e]}; };
      unrolled<4>(Team::thread(), n_ * P, Team::kThreads, both, [&](int e, const Double2& v) {
        now[e] = scale * v.x;
        gradient_[e] = v.y - weight * now[e];
      });
      Team::sync();
    }
    unrolled<4>(Team::thread(), n_ * P, Team::kThreads, [&](int e) { return gradient_[e]; },
             [&](int e, double v) { begin_.gradient[e] = w_.product[e] = v; });
  }

  // X(matrix), in place if C is symmetric, else in the other of two matrices. Returns the result.
  TFGW_DEVICE double* apply(double* matrix) {
    const int halves = cross_.halves();
    double* const to = halves == 1 ? matrix : matrix == w_.matrix ? w_.other : w_.matrix;
#pragma unroll 1
    for (int half = 0; half < halves; ++half) {
      cross_.matrix_times_template(matrix, half);
      Team::sync();
      cross_.structure_times(half, to);
      Team::sync();
    }
    if (halves == 2) cross_.average(to);
    if (halves == 2) Team::sync();
    return to;
  }

  TFGW_DEVICE void from_given() {
    if (Team::warp() == 0) round_to_marginals();
    Team::sync();
    each_entry<P, Team>(n_, [&](int e, int, int) { w_.matrix[e] = begin_.given[e]; });
    Team::sync();
    const double* const cross = apply(w_.matrix);
    double linear = 0, square = 0;
    each_entry<P, Team>(n_, [&](int e, int, int k) {
      const double cost = begin_.linear[e], x = cross[e];
      begin_.cross[e] = x;
      if (k < m_) linear += begin_.given[e] * cost, square += begin_.given[e] * x;
      begin_.gradient[e] = w_.product[e] = cost + -4 * alpha_ * x;
    });
    linear = total(linear), square = total(square);
    keep_costs(linear, square);
  }

  TFGW_DEVICE void keep_costs(double linear, double square) const {
    if (Team::thread() == 0) begin_.costs[0] = linear, begin_.costs[1] = square;
  }

  // Rounds the caller's coupling, whose marginals may be off by rounding: rows and columns that are too heavy are
  // scaled down, and the missing mass is spread as a product. Run by one warp.
  TFGW_DEVICE void round_to_marginals() {
    double* T = begin_.given;
    double *row_left = w_.matrix, *col_left = w_.product;
    const double* start = p_.start + (i64(graph_.first) * p_.templates + k_) * p_.columns;
    const i64 stride = p_.templates * p_.columns;
#pragma unroll 1
    for (int i = lane(); i < n_; i += 32) {
      double sum = 0;
#pragma unroll 1
      for (int k = 0; k < m_; ++k) sum += T[i * P + k] = larger(0.0, start[i * stride + live(k)]);
      const double shrink = sum > h(i) ? h(i) / sum : 1.0;
#pragma unroll 1
      for (int k = 0; k < P; ++k) T[i * P + k] = k < m_ ? T[i * P + k] * shrink : 0.0;
    }
    sync_warp();
#pragma unroll 1
    for (int k = lane(); k < m_; k += 32) {
      double sum = 0;
#pragma unroll 1
      for (int i = 0; i < n_; ++i) sum += T[i * P + k];
      const double shrink = sum > t_h(k) ? t_h(k) / sum : 1.0;
#pragma unroll 1
      for (int i = 0; i < n_; ++i) T[i * P + k] *= shrink;
      col_left[k] = larger(0.0, t_h(k) - sum * shrink);
    }
    sync_warp();
    double missing = 0;
#pragma unroll 1
    for (int i = lane(); i < n_; i += 32) {
      double sum = 0;
#pragma unroll 1
      for (int k = 0; k < m_; ++k) sum += T[i * P + k];
      missing += row_left[i] = larger(0.0, h(i) - sum);
    }
    missing = warp_sum(missing);
    sync_warp();
#pragma unroll 1
    for (int e = lane(); e < n_ * P && missing > 0; e += 32)
      if (e % P < m_) T[e] += row_left[e / P] * col_left[e % P] / missing;
  }

  const Problem& p_;
  const GraphView& graph_;
  const int b_, k_, n_, m_;
  const double alpha_;
  double* const share_;
  const Memory w_;
  const InitialState begin_;
  double* const gradient_;
  CrossOperator<P, Team, kShared> cross_;
};

// The part of a block's shared memory that precedes its pair.
struct alignas(16) StartBlockMemory {
  double share[kStartWarps];
  int item;
};

// Blocks take pairs from a queue, largest graphs first.
template <int P, class Team>
TFGW_DEVICE void start_pairs(const Problem& p) {
  StartBlockMemory& memory = *reinterpret_cast<StartBlockMemory*>(dynamic_shared_memory());
  char* const shared = dynamic_shared_memory() + sizeof(StartBlockMemory);
  const int shared_size = int(p.start_shared) - int(sizeof(StartBlockMemory));
  const i64 least = StartMemory<P, false>::size(p.queue[kLargestGraph]), equal = p.scratch_size / blocks_in_grid();
  const i64 each = (equal < least ? least + 1 : equal) / 2 * 2;
  if ((block_index() + 1) * each > p.scratch_size) return;
  char* const global = reinterpret_cast<char*>(p.scratch + block_index() * each);
#pragma unroll 1
  while (true) {
    if (thread_in_block() == 0) memory.item = atomic_add(&p.queue[kNextStart], 1);
    sync_block();
    const int item = memory.item;
    if (item >= p.graphs * p.templates) return;
    const int b = p.order[item / p.templates], k = int(item % p.templates);
    const GraphView graph = graph_view(p, b);
    if (graph.n > 0 && !is_skipped(p, b, k)) {
      const int packed = packed_entries<P>(p, graph, b);
      StartRoom room;
      bool in_shared = false;
      if constexpr (P <= 32) {
        const auto fits = [&](const StartRoom& room) {
          SharedSize size;
          StartMemory<P, true>(size, graph.n, p.live_count[k], packed, room);
          return size.bytes() <= shared_size;
        };
        in_shared = graph.symmetric && !p.dense && fits(room);
        room.matrix = fits({true, false, false});
        room.packed = fits({room.matrix, true, false});
        room.gradient = fits({room.matrix, room.packed, true});
        const SharedArena arena(shared, shared_size, global);
        if (in_shared) Start<P, true, Team>(p, graph, b, k, packed, room, memory.share, arena).run();
      }
      const SpillArena arena(shared, shared_size, global);
      if (!in_shared) Start<P, false, Team>(p, graph, b, k, packed, room, memory.share, arena).run();
    }
    sync_block();
  }
}

}  // namespace tfgw

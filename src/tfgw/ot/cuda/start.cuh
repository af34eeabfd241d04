// Kernel `start`: where the solve of each pair begins. The linear cost, the gradient at the first plan with its ties
// broken, the first basis. All of it goes over whole matrices, and all warps of a block work on one pair.
#pragma once

#include "cross.cuh"
#include "first_basis.cuh"
#include "results.cuh"
#include "workspace.cuh"

namespace tfgw {

constexpr int kTieHops = 3;
constexpr double kTieShare = 1e-6;

// A pair is "near" if its matrices, the template's table and the graph's structure have room in shared memory.
template <int P, bool kNear>
struct StartMemory {
  template <class Arena>
  TFGW_DEVICE StartMemory(Arena& arena, int rows, int cols, int packed) {
    first.regret = arena.template take<double>(rows), first.supply = arena.template take<i64>(rows);
    first.order = arena.template take<int>(rows);
    if constexpr (kNear) near.take(arena, rows, cols, packed, P, Shape<P>::groups(rows));
    matrix = arena.template take<double>(rows * P), product = arena.template take<double>(rows * P);
    if constexpr (!kNear) {
      other = arena.template take<double>(rows * P), half = arena.template take<double>(rows * P);
    }
    first.centred = reinterpret_cast<u64*>(product);
  }
  TFGW_DEVICE static i64 size(int rows) { return i64(rows) * (4 * P + 3) + 16; }  // in doubles

  typename FirstBasis<P, Team<kStartWarps>>::Memory first;
  double *matrix, *product, *other = nullptr, *half = nullptr;  // (rows, P)
  NearStructure near{};
};

template <int P, bool kNear>
class Start {
  using Team = tfgw::Team<kStartWarps>;
  using Memory = StartMemory<P, kNear>;

 public:
  // `share` has a number for each warp.
  template <class Arena>
  TFGW_DEVICE Start(const Problem& p, const GraphView& graph, int b, int k, int packed, double* share, Arena arena)
      : p_(p), graph_(graph), b_(b), k_(k), n_(graph.n), m_(p.live_count[k]),
        alpha_(has_structure(p) ? p.alpha[k] : 0.0), share_(share), w_(arena, n_, m_, packed),
        begin_(beginning_of(p, graph, b, k)), cross_(p, graph, k, m_, w_.product, w_.half, w_.near) {}

  TFGW_DEVICE void run() {
    const i64* const supply = p_.supply + graph_.first;
    for (int i = Team::thread(); i < n_; i += Team::kThreads) w_.first.supply[i] = read_only(supply + i);
    if constexpr (kNear) load_structure<P, Team>(p_, graph_, b_, k_, m_, w_.near);
    linear_cost();
    Team::meet();
    if (alpha_ <= 0) {
      each_entry<P, Team>(n_, [&](int e, int, int) { begin_.gradient[e] = w_.matrix[e] = begin_.linear[e]; });
    } else if (p_.start) {
      from_given();
    } else {
      from_product();
    }
    Team::meet();
    FirstBasis<P, Team> first(n_, m_, w_.first);
    first.compute_regrets(w_.matrix);
    Team::meet();
    first.order_rows();
    Team::meet();
    if (Team::warp() == 0) first.ship(p_.demand + i64(k_) * P, begin_.arcs);
  }

 private:
  TFGW_DEVICE double h(int i) const { return read_only(p_.h + graph_.first + i); }
  TFGW_DEVICE double t_h(int l) const { return l < m_ ? read_only(p_.t_h + i64(k_) * P + l) : 0.0; }
  TFGW_DEVICE int live(int l) const { return read_only(p_.live + i64(k_) * P + l); }

  // The largest of what the warps have, or the sum of what the threads have.
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
    Team::meet();  // nobody reads what was there before
    if (lane() == 0) share_[Team::warp()] = number;
    Team::meet();
  }

  // (1−α) M; at α = 1 features play no role and may be anything finite.
  TFGW_DEVICE void linear_cost() {
    if (p_.cost) {
      each_entry<P, Team>(n_, [&](int e, int i, int k) {
        const double* const row = p_.cost + (i64(graph_.first + i) * p_.templates + k_) * p_.columns;
        begin_.linear[e] = k < m_ ? read_only(row + live(k)) : kPadCost;
      });
    } else {
      squared_distances();
    }
  }

  TFGW_DEVICE void squared_distances() {
    constexpr int kRowsEach = 4;  // that share what is read of the template
    constexpr int kTogether = Team::kThreads / P;
    static_assert(Team::kThreads % P == 0, "a thread stays in its column");
    const int d = alpha_ < 1 ? int(p_.features) : 0, k = Team::thread() % P;
    const double* const there = p_.ft + i64(k_) * p_.features * P + k;
#pragma unroll 1
    for (int first = Team::thread() / P; first < n_; first += kRowsEach * kTogether) {
      const double* x[kRowsEach];
      double sum[kRowsEach] = {};
#pragma unroll
      for (int s = 0; s < kRowsEach; ++s) {
        const int i = first + s * kTogether;
        x[s] = p_.x + i64(graph_.first + (i < n_ ? i : first)) * p_.features;
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
        if (i < n_) begin_.linear[i * P + k] = k < m_ ? (1 - alpha_) * sum[s] : kPadCost;
      }
    }
  }

  // From hh̄ᵀ, of which everything has a closed form: X = ½ (Ch (C̄h̄)ᵀ + Cᵀh (C̄ᵀh̄)ᵀ).
  TFGW_DEVICE void from_product() {
    double linear = 0, highest = 0;
    each_entry<P, Team>(n_, [&](int e, int i, int k) {
      const double cost = begin_.linear[e];
      const double g = cost + -4 * alpha_ * product_cross<P>(p_, graph_.first + i, k_, k);
      begin_.gradient[e] = g;
      if (k < m_) linear += h(i) * t_h(k) * cost, highest = larger(highest, magnitude(g));
      const double norms = read_only(p_.x_norm + graph_.first + i) + read_only(p_.t_norm + i64(k_) * P + k);
      w_.matrix[e] = k < m_ ? 0.5 * ((1 - alpha_) * norms - cost) + alpha_ : 0.0;
    });
    linear = total(linear);
    double graph_mean = 0, template_mean = 0;
    for (int i = lane(); i < n_; i += 32) graph_mean += h(i) * p_.out_mean[graph_.first + i];
    for (int k = lane(); k < m_; k += 32) template_mean += t_h(k) * p_.t_mean_out[i64(k_) * P + k];
    warp_sums(graph_mean, template_mean);
    keep_costs(linear, graph_mean * template_mean);
    break_ties(kTieShare * largest(highest));
  }

  // Ties of the first linear problem are broken by how alike the surroundings of two nodes are:
  // S₀ = (1−α) F F̄ᵀ + α, Sₜ₊₁ ∝ X(Sₜ). S₀ is in `matrix`, which gets the gradient in the end.
  TFGW_DEVICE void break_ties(double weight) {
    double* now = w_.matrix;
#pragma unroll 1
    for (int hop = 0; hop < kTieHops; ++hop) {
      now = apply(now);
      double peak = 0;
      each_entry<P, Team>(n_, [&](int e, int, int k) {
        if (k < m_) peak = larger(peak, magnitude(now[e]));
      });
      peak = largest(peak);
      if (peak == 0) break;
      const double scale = 1 / peak;
      each_entry<P, Team>(n_, [&](int e, int, int) { begin_.gradient[e] -= weight * (now[e] *= scale); });
      Team::meet();
    }
    each_entry<P, Team>(n_, [&](int e, int, int) { w_.matrix[e] = begin_.gradient[e]; });
  }

  // X(matrix), in place where C is symmetric; else in the other one of two matrices. Returns where.
  TFGW_DEVICE double* apply(double* matrix) {
    const int halves = cross_.halves();
    double* const to = halves == 1 ? matrix : matrix == w_.matrix ? w_.other : w_.matrix;
#pragma unroll 1
    for (int half = 0; half < halves; ++half) {
      cross_.matrix_times_template(matrix, half);
      Team::meet();
      cross_.structure_times(half, to, nullptr);
      Team::meet();
    }
    if (halves == 2) cross_.average(to);
    if (halves == 2) Team::meet();
    return to;
  }

  TFGW_DEVICE void from_given() {
    if (Team::warp() == 0) round_to_marginals();
    Team::meet();
    each_entry<P, Team>(n_, [&](int e, int, int) { w_.matrix[e] = begin_.given[e]; });
    Team::meet();
    const double* const cross = apply(w_.matrix);
    double linear = 0, square = 0;
    each_entry<P, Team>(n_, [&](int e, int, int k) {
      const double cost = begin_.linear[e], x = cross[e];
      begin_.cross[e] = x;
      if (k < m_) linear += begin_.given[e] * cost, square += begin_.given[e] * x;
      begin_.gradient[e] = w_.matrix[e] = cost + -4 * alpha_ * x;
    });
    linear = total(linear), square = total(square);
    keep_costs(linear, square);
  }

  TFGW_DEVICE void keep_costs(double linear, double square) const {
    if (Team::thread() == 0) begin_.costs[0] = linear, begin_.costs[1] = square;
  }

  // A coupling near the one that the caller gives, which may miss its marginals by rounding: rows and columns that are
  // too heavy shrink, and what is then missing is spread as a product. One warp.
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
    sync();
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
    sync();
    double missing = 0;
#pragma unroll 1
    for (int i = lane(); i < n_; i += 32) {
      double sum = 0;
#pragma unroll 1
      for (int k = 0; k < m_; ++k) sum += T[i * P + k];
      missing += row_left[i] = larger(0.0, h(i) - sum);
    }
    missing = warp_sum(missing);
    sync();
#pragma unroll 1
    for (int e = lane(); e < n_ * P && missing > 0; e += 32)
      if (e % P < m_) T[e] += row_left[e / P] * col_left[e % P] / missing;
  }

  const Problem& p_;
  const GraphView graph_;
  const int b_, k_, n_, m_;
  const double alpha_;
  double* const share_;
  const Memory w_;
  const Beginning begin_;
  CrossOperator<P, Team, kNear> cross_;
};

// A block's memory besides that of its pair, which comes behind it.
struct alignas(16) StartBlockMemory {
  double share[kStartWarps];
  int item;
};

// As many blocks as the working memory has room for take pairs from a queue, largest graphs first.
template <int P>
TFGW_DEVICE void start_pairs(const Problem& p) {
  StartBlockMemory& memory = *reinterpret_cast<StartBlockMemory*>(dynamic_memory());
  char* const shared = dynamic_memory() + sizeof(StartBlockMemory);
  const int shared_size = int(p.start_shared) - int(sizeof(StartBlockMemory));
  const i64 least = StartMemory<P, false>::size(p.queue[kLargestGraph]), equal = p.scratch_size / blocks_in_grid();
  const i64 room = (equal < least ? least + 1 : equal) / 2 * 2;
  if ((block_index() + 1) * room > p.scratch_size) return;
#pragma unroll 1
  while (true) {
    if (thread_in_block() == 0) memory.item = fetch_add(&p.queue[kNextStart], 1);
    sync_block();
    const int item = memory.item;
    if (item >= p.graphs * p.templates) return;
    const int b = p.order[item / p.templates], k = int(item % p.templates);
    const GraphView graph = graph_view(p, b);
    if (graph.n > 0) {
      const int packed = packed_entries<P>(p, graph, b);
      bool near = false;
      if constexpr (P <= 32) {
        NearSize size;
        StartMemory<P, true>(size, graph.n, p.live_count[k], packed);
        near = graph.symmetric && !p.dense && size.bytes() <= shared_size;
        if (near) Start<P, true>(p, graph, b, k, packed, memory.share, NearArena(shared)).run();
      }
      if (!near) {
        char* const global = reinterpret_cast<char*>(p.scratch + block_index() * room);
        Start<P, false>(p, graph, b, k, packed, memory.share, FarArena(shared, shared_size, global)).run();
      }
    }
    sync_block();
  }
}

}  // namespace tfgw

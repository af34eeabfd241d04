// Kernel `prepare` for a template: drops nodes without weight, orders the others, and computes the derived data.
#pragma once

#include "prepare.cuh"

namespace tfgw {

template <int P>
class TemplatePreparer {
 public:
  TFGW_DEVICE TemplatePreparer(const Problem& p, int k, PrepareMemory<P>& memory)
      : p_(p), k_(k), columns_(int(p.columns)), weights_(p.template_weights + i64(k) * p.columns),
        x_(p.template_x + i64(k) * p.columns * p.features),
        S_(p.template_structure ? p.template_structure + i64(k) * p.columns * p.columns : nullptr), shared_(memory) {}

  TFGW_DEVICE void run() {
    if (was_invalid(p_) || !all_valid(p_, check())) return;
    find_live();
    double* const h = p_.t_h + i64(k_) * P;
    bool valid = true;
    // What follows until the next barrier does not depend on the order of nodes that are equal in weight and features.
    if (in_last_warp())
      valid = fix_weights(count_, [&](int l) { return read_only(weights_ + shared_.sorted[l]); }, p_.weight_tolerance,
                          1, h, p_.demand + i64(k_) * P);
    features();
    if (!all_valid(p_, valid)) return;
    each(count_, [&](int l) { p_.live[i64(k_) * P + l] = shared_.live[l]; });
    if (!S_) return;
    moments(h);
    matrices();
  }

 private:
  TFGW_DEVICE bool check() {
    const i64 m = columns_;
    const double alpha = read_only(p_.alpha + k_);
    bool valid = is_alpha(alpha);
    each(m, [&](i64 e) { valid &= read_only(weights_ + e) >= 0; });
    valid &= all_usable(x_, m * p_.features);
    if (S_) valid &= all_usable(S_, m * m);
    return valid;
  }

  // Compares two nodes by weight and features: −1, 0 or 1.
  TFGW_DEVICE int compare(int a, int b) const {
    const double weight = read_only(weights_ + a), other = read_only(weights_ + b);
    if (weight != other) return weight < other ? -1 : 1;
    constexpr int kUnroll = 8;
    const i64 d = p_.features;
#pragma unroll 1
    for (i64 first = 0; first < d; first += kUnroll) {
      double f[kUnroll], g[kUnroll];
#pragma unroll
      for (int s = 0; s < kUnroll; ++s) {
        const i64 c = first + s < d ? first + s : first;
        f[s] = read_only(x_ + a * d + c), g[s] = read_only(x_ + b * d + c);
      }
#pragma unroll
      for (int s = 0; s < kUnroll; ++s)
        if (f[s] != g[s]) return f[s] < g[s] ? -1 : 1;
    }
    return 0;
  }

  // Sorts the nodes with weight by weight and features, and by structure among equals, so that their numbering does not
  // matter. Without structure, equal nodes can be exchanged. One warp per node.
  TFGW_DEVICE void find_live() {
    OrderMemory<P>& order = shared_.order;
    bool tied = false;
#pragma unroll 1
    for (int first = 0; first < columns_; first += 32)
      count_ += popc(ballot(first + lane() < columns_ && read_only(weights_ + first + lane()) > 0));
#pragma unroll 1
    for (int l = thread_in_block() / 32; l < columns_; l += threads_in_block() / 32) {
      const bool kept = read_only(weights_ + l) > 0;
      int before = 0, equal_before = 0;  // the latter among the nodes of lower index
#pragma unroll 1
      for (int first = 0; first < columns_; first += 32) {
        const int other = first + lane();
        const bool alike = other < columns_ && other != l && (read_only(weights_ + other) > 0) == kept;
        const int sign = alike && kept ? compare(other, l) : 0;
        before += popc(ballot(alike && sign < 0));
        equal_before += popc(ballot(alike && sign == 0 && other < l));
      }
      tied |= kept && equal_before > 0;
      if (lane() != 0) continue;
      const int rank = before + equal_before, place = kept ? rank : count_ + rank;
      shared_.sorted[place] = shared_.live[place] = l;
      if (kept) order.cell[rank] = before;
    }
    if (thread_in_block() == 0) p_.live_count[k_] = count_;
    if (any_in_block(tied) && S_) order_by_structure();
  }

  // Returns before the order is complete, if one warp suffices for it.
  TFGW_DEVICE void order_by_structure() {
    using Order = TemplateOrder<P>;
    Order order(p_, k_, count_, shared_.order);
    order.read([&](int a, int b) { return read_only(S_ + shared_.sorted[a] * columns_ + shared_.sorted[b]); });
    sync_block();
    if (Order::kByOneWarp && thread_in_block() >= 32) return;
    order.run();
    order.each_node([&](int l) { shared_.live[shared_.order.cell[l]] = shared_.sorted[l]; });
  }

  TFGW_DEVICE void features() {
    const i64 d = p_.features;
    each(d * P, [&](i64 e) {
      const int l = int(e % P);
      return l < count_ ? read_only(x_ + shared_.sorted[l] * d + e / P) : 0.0;
    }, [&](i64 e, double f) { p_.ft[k_ * d * P + e] = f; });
    bool valid = true;
    each_row(P, [&](int l, int place) {
      const bool there = l < count_;
      const double norm = squared_norm(x_ + (there ? shared_.sorted[l] : 0) * d, there ? d : 0, place, valid);
      if (l < P && place == 0) p_.t_norm[i64(k_) * P + l] = norm;
    });
  }

  TFGW_DEVICE void moments(const double* h) {
    double* const mean_out = p_.t_mean_out + i64(k_) * P;
    double* const mean_in = p_.t_mean_in + i64(k_) * P;
    double constant = 0;
    each_row(columns_, [&](int row, int part) {  // in sorted order, because `constant` is a sum over rows
      const int a = row < columns_ ? shared_.live[row] : columns_;
      double out = 0, in = 0, square_out = 0, square_in = 0;
      unrolled<4>(part, a < columns_ ? count_ : 0, kRowThreads, [&](int l) {
        const int b = shared_.live[l];
        return Weighed{read_only(S_ + a * columns_ + b), read_only(S_ + b * columns_ + a), h[l]};
      }, [&](int, const Weighed& s) {
        out += s.forth * s.h, square_out += s.forth * s.forth * s.h;
        in += s.back * s.h, square_in += s.back * s.back * s.h;
      });
      row_sums(out, in, square_out, square_in);
      if (a >= columns_ || part != 0) return;
      p_.t_square[i64(k_) * columns_ + a] = square_out + square_in;
      if (row < count_) mean_out[row] = out, mean_in[row] = in, constant += h[row] * square_out;
    });
    each(P - count_, [&](int l) { mean_out[count_ + l] = mean_in[count_ + l] = 0; });
    constant = block_sum(constant, shared_);
    if (thread_in_block() == 0) p_.t_constant[k_] = constant;
  }

  TFGW_DEVICE void matrices() {
    struct Pair {
      double forth, back;
    };
    each(P * P, [&](int e) {
      const int a = e / P, l = e % P;
      const bool there = a < count_ && l < count_;
      const int row = there ? shared_.live[a] : 0, col = there ? shared_.live[l] : 0;
      const double forth = read_only(S_ + row * columns_ + col), back = read_only(S_ + col * columns_ + row);
      return there ? Pair{forth, back} : Pair{0, 0};
    }, [&](int e, Pair s) {
      const i64 at = i64(k_) * P * P + e;
      p_.C[at] = s.forth, p_.Ct[at] = s.back, p_.mean[at] = 0.5 * (s.forth + s.back);
    });
  }

  const Problem& p_;
  const int k_, columns_;
  const double *const weights_, *const x_, *const S_;
  PrepareMemory<P>& shared_;
  int count_ = 0;
};

}  // namespace tfgw

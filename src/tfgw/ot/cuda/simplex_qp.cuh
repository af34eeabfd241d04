// The corrective step, one lane per vertex: the counterpart of cpp/simplex_qp.cpp.
#pragma once

#include "warp.cuh"

namespace tfgw {

// A matrix over atoms. There are rarely many atoms, and those in the first slots are in shared memory.
template <int kSmall>
struct AtomMatrix {
  static_assert((kSmall & (kSmall - 1)) == 0, "s | t is as small as both");
  double *small, *large;
  TFGW_DEVICE double get(int s, int t) const {
    return (s | t) < kSmall ? small[s * kSmall + t] : large[s * kMaxAtoms + t];
  }
  TFGW_DEVICE void set(int s, int t, double v) const {
    if ((s | t) < kSmall) small[s * kSmall + t] = v;
    else large[s * kMaxAtoms + t] = v;
  }
};

// The same if all atoms are in the first slots.
template <int kSmall>
struct SmallMatrix {
  double* small;
  TFGW_DEVICE explicit SmallMatrix(const AtomMatrix<kSmall>& m) : small(m.small) {}
  TFGW_DEVICE double get(int s, int t) const { return small[s * kSmall + t]; }
  TFGW_DEVICE void set(int s, int t, double v) const { small[s * kSmall + t] = v; }
};

template <int kSmall>
struct QpMemory {
  AtomMatrix<kSmall> hessian;
  double* move;  // by free position
  int* atom;
};

// Moves the weights (each lane's own; they lie on the simplex) downhill to a local minimum of
// linear·w − 2α wᵀ Q w  over the face that they span.
template <class Matrix, int kSmall>
class SimplexQp {
 public:
  TFGW_DEVICE SimplexQp(const AtomMatrix<kSmall>& Q, double linear, double alpha, const QpMemory<kSmall>& memory)
      : Q_(Q), hessian_(memory.hessian), linear_(linear), alpha_(alpha), m_(memory) {}

  TFGW_DEVICE void descend(double& weight) {
    while (true) {
      const u32 active = ballot(weight > 0);
      if (popc(active) < 2) return;
      reduce(active, weight);
      bool newton;
      const double d = direction(newton);
      const double d_reference = -warp_sum(d);
      // Each free position's move, back to the lane of its atom.
      if (lane() < count_) m_.move[lane()] = d;
      sync_warp();
      const bool free = (active >> lane() & 1) && lane() != reference_;
      const double move = free ? m_.move[position(active)] : lane() == reference_ ? d_reference : 0.0;
      sync_warp();
      const double limit = step_limit(newton);
      const double ratio = move < 0 ? -weight / move : kNone;
      const u32 rank = lane() == reference_ ? 64 : lane();
      const int blocking = lane_of_least(bits_of(ratio), rank);
      const double nearest = shfl(ratio, blocking);
      const bool blocked = nearest < limit;
      weight = larger(0.0, weight + (blocked ? nearest : limit) * move);
      if (!blocked) return;
      if (lane() == blocking) weight = 0;
    }
  }

 private:
  static constexpr double kNone = 10 * kUnboundedStep;  // ratio of a weight that does not fall

  TFGW_DEVICE int position(u32 active) const {
    return popc(active & ~(u32(1) << reference_) & ((u32(1) << lane()) - 1));
  }

  // The objective on the active face, in coordinates of the free atoms (the reference atom takes minus their sum).
  TFGW_DEVICE void reduce(u32 active, double weight) {
    reference_ = lane_of_least(~bits_of(weight > 0 ? weight : 0.0), lane());
    double slope = linear_;
#pragma unroll 1
    for (u32 left = active; left; left &= left - 1) {
      const int t = lowest_bit(left);
      const double w = shfl(weight, t);
      if (active >> lane() & 1) slope -= 4 * alpha_ * Q_.get(lane(), t) * w;
    }
    const double slope_r = shfl(slope, reference_);
    count_ = popc(active) - 1;
    if ((active >> lane() & 1) && lane() != reference_) m_.atom[position(active)] = lane();
    sync_warp();
    const int s = lane() < count_ ? m_.atom[lane()] : reference_, r = reference_;
    gradient_ = shfl(slope, s) - slope_r;
    const double with_r = Q_.get(s, r), own_r = Q_.get(r, r);
#pragma unroll 1
    for (int g = 0; g < count_; ++g) {
      const double other_r = shfl(with_r, g);
      if (lane() < count_) hessian_.set(lane(), g, -4 * alpha_ * (Q_.get(s, m_.atom[g]) - with_r - other_r + own_r));
    }
    sync_warp();
  }

  TFGW_DEVICE double H(int i, int j) const { return hessian_.get(i, j); }

  // H = L D Lᵀ in place, one row per lane: L D below the diagonal, Lᵀ above it; `inverse_` is the lane's entry of D⁻¹.
  // Returns the first column without positive curvature, or the count.
  TFGW_DEVICE int factorise() {
    const double scale = warp_max(lane() < count_ ? magnitude(H(lane(), lane())) : 0.0);
#pragma unroll 1
    for (int j = 0; j < count_; ++j) {
      double v = 0;
      if (lane() >= j && lane() < count_) {
        v = H(lane(), j);
#pragma unroll 4
        for (int k = 0; k < j; ++k) v -= H(lane(), k) * H(k, j);
      }
      const double pivot = shfl(v, j);
      if (!(pivot > flat_curvature(scale))) return j;
      const double inverse = 1 / pivot;
      if (lane() == j) inverse_ = inverse;
      if (lane() > j && lane() < count_) hessian_.set(lane(), j, v), hessian_.set(j, lane(), v * inverse);
      sync_warp();
    }
    return count_;
  }

  // L x = b
  TFGW_DEVICE double solve_lower(int n, double b) {
#pragma unroll 1
    for (int i = 0; i < n; ++i) {
      const double known = shfl(b, i);
      if (lane() > i && lane() < n) b -= H(i, lane()) * known;
    }
    return b;
  }

  // Lᵀ x = b
  TFGW_DEVICE double solve_upper(int n, double b) {
#pragma unroll 1
    for (int i = n - 1; i >= 0; --i) {
      const double known = shfl(b, i);
      if (lane() < i) b -= H(lane(), i) * known;
    }
    return b;
  }

  // Newton's direction where the face is convex, else a direction of non-positive curvature that does not go uphill.
  TFGW_DEVICE double direction(bool& newton) {
    const int flat = factorise();
    newton = flat == count_;
    double d = 0;
    if (newton) {
      d = solve_upper(count_, inverse_ * solve_lower(count_, lane() < count_ ? -gradient_ : 0.0));
    } else {
      d = solve_upper(flat, lane() < flat ? -H(lane(), flat) : 0.0);
      if (lane() == flat) d = 1;
      const double slope = warp_sum(lane() < count_ ? gradient_ * d : 0.0);
      if (slope > 0) d = -d;
    }
    sync_warp();
    return lane() < count_ ? d : 0.0;
  }

  const Matrix Q_, hessian_;
  const double linear_, alpha_;
  const QpMemory<kSmall> m_;
  int reference_ = 0, count_ = 0;
  double gradient_ = 0, inverse_ = 0;
};

// Not inlined, because the code is large and rarely needed.
template <class Matrix, int kSmall>
TFGW_NOINLINE double descend_over_simplex(AtomMatrix<kSmall> Q, double linear, double alpha, QpMemory<kSmall> memory,
                                          double weight) {
  SimplexQp<Matrix, kSmall>(Q, linear, alpha, memory).descend(weight);
  return weight;
}

}  // namespace tfgw

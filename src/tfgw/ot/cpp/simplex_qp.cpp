#include "simplex_qp.hpp"

#include <algorithm>
#include <cmath>

#include "rules.cuh"

namespace tfgw {
namespace {

// The objective on the active face, in coordinates d_s of the free atoms (the reference atom takes −Σ d_s).
struct Face {
  std::vector<int> free;
  int reference = 0;
  std::vector<double> gradient, hessian;  // hessian: row-major, free × free
};

Face reduce(const std::vector<int>& active, const double* Q, int stride, const double* linear, double alpha,
            const std::vector<double>& weights) {
  Face face;
  face.reference = *std::max_element(active.begin(), active.end(),
                                     [&](int a, int b) { return weights[a] < weights[b]; });
  for (int s : active)
    if (s != face.reference) face.free.push_back(s);
  const auto slope = [&](int s) {
    double qw = 0;
    for (int t : active) qw += Q[s * stride + t] * weights[t];
    return linear[s] - 4 * alpha * qw;
  };
  const int r = face.reference;
  const double slope_r = slope(r);
  for (int s : face.free) {
    face.gradient.push_back(slope(s) - slope_r);
    for (int t : face.free)
      face.hessian.push_back(-4 * alpha *
                             (Q[s * stride + t] - Q[s * stride + r] - Q[t * stride + r] + Q[r * stride + r]));
  }
  return face;
}

// Cholesky H = L Lᵀ in place (lower triangle). Returns the first column without positive curvature, or n.
int factorise(std::vector<double>& H, int n) {
  double scale = 0;
  for (int j = 0; j < n; ++j) scale = std::max(scale, std::abs(H[j * n + j]));
  for (int j = 0; j < n; ++j) {
    double pivot = H[j * n + j];
    for (int k = 0; k < j; ++k) pivot -= H[j * n + k] * H[j * n + k];
    if (!(pivot > flat_curvature(scale))) return j;
    H[j * n + j] = std::sqrt(pivot);
    for (int i = j + 1; i < n; ++i) {
      double v = H[i * n + j];
      for (int k = 0; k < j; ++k) v -= H[i * n + k] * H[j * n + k];
      H[i * n + j] = v / H[j * n + j];
    }
  }
  return n;
}

void solve_lower(const std::vector<double>& L, int stride, int n, std::vector<double>& b) {
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < i; ++k) b[i] -= L[i * stride + k] * b[k];
    b[i] /= L[i * stride + i];
  }
}

void solve_upper(const std::vector<double>& L, int stride, int n, std::vector<double>& b) {
  for (int i = n - 1; i >= 0; --i) {
    for (int k = i + 1; k < n; ++k) b[i] -= L[k * stride + i] * b[k];
    b[i] /= L[i * stride + i];
  }
}

// Newton's direction where the face is convex, else a direction of non-positive curvature that does not go uphill.
std::vector<double> direction(Face& face, bool& newton) {
  const int n = int(face.free.size());
  const int flat = factorise(face.hessian, n);
  newton = flat == n;
  std::vector<double> d(n, 0.0);
  if (newton) {
    for (int s = 0; s < n; ++s) d[s] = -face.gradient[s];
    solve_lower(face.hessian, n, n, d);
    solve_upper(face.hessian, n, n, d);
    return d;
  }
  for (int s = 0; s < flat; ++s) d[s] = -face.hessian[flat * n + s];  // L_flat,s: the forward solve is already done
  solve_upper(face.hessian, n, flat, d);
  d[flat] = 1;
  double slope = 0;
  for (int s = 0; s < n; ++s) slope += face.gradient[s] * d[s];
  if (slope > 0)
    for (double& v : d) v = -v;
  return d;
}

}  // namespace

void descend_over_simplex(int count, const double* Q, int stride, const double* linear, double alpha,
                          std::vector<double>& weights) {
  while (true) {
    std::vector<int> active;
    for (int s = 0; s < count; ++s)
      if (weights[s] > 0) active.push_back(s);
    if (active.size() < 2) return;

    Face face = reduce(active, Q, stride, linear, alpha, weights);
    bool newton;
    const std::vector<double> d = direction(face, newton);
    double d_reference = 0;
    for (double v : d) d_reference -= v;

    double step = step_limit(newton);
    int blocking = -1;
    const auto limit = [&](int atom, double v) {
      if (v < 0 && -weights[atom] / v < step) step = -weights[atom] / v, blocking = atom;
    };
    for (size_t s = 0; s < d.size(); ++s) limit(face.free[s], d[s]);
    limit(face.reference, d_reference);

    for (size_t s = 0; s < d.size(); ++s) weights[face.free[s]] = std::max(0.0, weights[face.free[s]] + step * d[s]);
    weights[face.reference] = std::max(0.0, weights[face.reference] + step * d_reference);
    if (blocking < 0) return;
    weights[blocking] = 0;
  }
}

}  // namespace tfgw

// The rules of the solver that the C++ core (ot/cpp) and the CUDA kernels share: constants and scalar decisions. Both
// compilers read this file, so a rule cannot change in one core only. No standard headers, because NVRTC has none.
//
// The cores follow the same rules, but not to the last bit. Known differences:
// - The kernels use fused multiply-add and sum over lanes in a fixed tree.
// - Weights become units of mass (kMassUnit) by std::llround in the C++ core and by truncating x + 0.5 in the kernels.
//   The two differ by one unit for odd x between 2^52 and 2^53.
// - A tie-breaking matrix is divided by its largest entry in the C++ core and multiplied by the reciprocal in the
//   kernels. A column mean of costs is a sum of quotients in the C++ core and the quotient of a sum in the kernels.
// - The corrective step factorises H = L Lᵀ in the C++ core and H = L D Lᵀ in the kernels.
// - Where costs differ by many powers of ten, the C++ core refines a linear problem until the small ones count as well.
//   The kernels ignore reduced costs that are rounding of the largest cost, and add what they ignore to the gap.
// - Minima over costs start from infinity in the C++ core and from kPadCost in the kernels.
// - After an exchange (start_rules.cuh), X of the plan is recomputed in the C++ core and updated in the kernels.
// - Equally good exchanges and neighbours are tried in the order in which a plan or a structure lists them in the C++
//   core, and by index in the kernels.
// - Template nodes that are equal in weight and features are ordered by structure in both, but not in the same order
//   (cpp/canonical.hpp, template_order.cuh).
#pragma once

#ifdef __CUDACC__
#define TFGW_HD __host__ __device__ __forceinline__ constexpr
#else
#define TFGW_HD constexpr
#endif

namespace tfgw {

// std::max, std::min and, except for the sign of a zero, std::abs.
TFGW_HD double larger(double a, double b) { return a < b ? b : a; }
TFGW_HD double smaller(double a, double b) { return b < a ? b : a; }
TFGW_HD double magnitude(double a) { return a < 0 ? -a : a; }

// The finaliser of splitmix64: a bijection of 64 bits that maps 0 to 0.
TFGW_HD unsigned long long scramble(unsigned long long v) {
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ull;
  v = (v ^ (v >> 27)) * 0x94d049bb133111ebull;
  return v ^ (v >> 31);
}

// A bijection of 64 bits that also scrambles 0. Sums of scrambled numbers serve as hashes of multisets.
constexpr unsigned long long kGoldenRatio = 0x9e3779b97f4a7c15ull;  // 2^64 times its fractional part
TFGW_HD unsigned long long mix(unsigned long long v) { return scramble(v + kGoldenRatio); }

// ---- Input

constexpr double kLargest = 1e100;  // largest magnitude of an input; beyond it, squares and their products overflow

TFGW_HD bool usable(double value) { return magnitude(value) <= kLargest; }
TFGW_HD bool is_alpha(double alpha) { return alpha >= 0 && alpha <= 1; }
TFGW_HD bool sums_to_one(double total, double tolerance) { return magnitude(total - 1) <= tolerance; }

// ---- Results

// How the solve of a pair ended: `tfgw.ot.Status` in Python. Only the kernels can be imprecise.
enum class Status : int { converged = 0, max_iter = 1, empty = 2, imprecise = 3 };

// How a linear problem ended. The kernels cannot be interrupted.
enum class Outcome { optimal, improved, interrupted };

// ---- Linear optimal transport

constexpr int kMassBits = 60;  // flows are integers in units of 2^-60 of the total mass
constexpr double kMassUnit = 1.0 / double(1LL << kMassBits);
constexpr double kPadCost = 1e300;  // cost of padding columns, which no pivot picks
constexpr double kEpsilon = 2.220446049250313e-16;  // of a double
constexpr int kPricedEntries = 4096;

// Potentials are sums of costs along tree paths. A reduced cost below this multiple of the largest cost is rounding.
TFGW_HD double reduced_cost_rounding(int rows, int cols) { return 4 * kEpsilon * (rows + cols); }

// Rows priced before pivoting on the best candidates. Both cores round the columns of a row up to a multiple of four.
TFGW_HD int priced_rows(int cols) {
  const int rows = kPricedEntries / ((cols + 3) / 4 * 4);
  return rows > 1 ? rows : 1;
}

// The greedy first basis decides ties as if every node but the root had a vanishing extra supply, counted by `extra`: a
// basis that is then feasible is strongly feasible. The root is the last column.
TFGW_HD int extra_demand(bool root, int rows, int cols) { return root ? rows + cols - 1 : -1; }

// Whether a row fills a column, and has something left, rather than the other way round.
template <class Int>
TFGW_HD bool fills_column(Int want, Int have, int extra_want, int extra_have) {
  return want < have || (want == have && extra_want < extra_have);
}

// ---- Frank-Wolfe (cpp/fgw.hpp has the objective E)

constexpr int kMaxAtoms = 32;        // maximum number of vertices in an iterate
constexpr int kLazySweeps = 2;       // sweeps over the costs per linear problem while there is a descent direction
constexpr int kTieHops = 3;          // radius of the neighbourhoods compared by a tie-break
constexpr double kTieShare = 1e-6;   // relative size of a tie-break's change to the cost
constexpr double kRounding = 1e-14;  // gaps below this share of the objective's scale are rounding
constexpr double kCostShare = 1e-6;  // a plan is optimal up to this share of the smallest cost that it pays
constexpr double kOracleShare = 1e-10;  // tolerance of the last linear oracle, relative to the objective's scale

// Limit on the sweeps of a linear problem; 0 means none. While there is a descent direction, any descent will do.
TFGW_HD int sweep_limit(bool lazy, bool last) { return lazy && !last ? kLazySweeps : 0; }

// E(T), with (1−α)⟨M, T⟩ and ⟨T, X(T)⟩; `structure_scale` is α (hᵀC²h + h̄ᵀC̄²h̄).
TFGW_HD double objective(double structure_scale, double linear, double alpha, double squared) {
  return structure_scale + linear - 2 * alpha * squared;
}

// ⟨gradient at T, T − vertex⟩, of which `slope` is ⟨gradient, vertex⟩.
TFGW_HD double frank_wolfe_gap(double linear, double alpha, double squared, double slope) {
  return larger(0.0, linear - 4 * alpha * squared - slope);
}

// The largest gap at which T counts as stationary. The objective's scale is that of its terms.
TFGW_HD double objective_scale(double structure_scale, double linear) { return structure_scale + magnitude(linear); }
TFGW_HD double gap_tolerance(double tol, double value, double scale) {
  return tol * magnitude(value) + kRounding * scale;
}

// Half the second derivative of E from T to a vertex V; own = ⟨V, X(V)⟩, mixed = ⟨V, X(T)⟩, squared = ⟨T, X(T)⟩.
TFGW_HD double segment_curvature(double alpha, double own, double mixed, double squared) {
  return -2 * alpha * (own - 2 * mixed + squared);
}

// A flat point may be a saddle: the vertex may then lie downhill although the gradient does not show it.
TFGW_HD bool is_saddle(double curvature, double gap, double tolerance) { return curvature - gap < -4 * tolerance; }

// Exact minimum on the segment from T to the vertex.
TFGW_HD double line_search_step(double gap, double curvature) {
  return curvature > 0 ? smaller(1.0, gap / (2 * curvature)) : 1.0;
}

// S₀ = (1−α) F F̄ᵀ + α, the similarity of two nodes that breaks ties at hh̄ᵀ, from |f|² + |f̄|² and (1−α)|f − f̄|².
TFGW_HD double tie_similarity(double alpha, double norms, double cost) {
  return 0.5 * ((1 - alpha) * norms - cost) + alpha;
}

// The structure term at a plan, clamped at 0 against rounding.
TFGW_HD double structure_term(double constants, double squared) { return larger(0.0, constants - 2 * squared); }

// ---- Corrective step over the simplex

constexpr double kFlatCurvature = 1e-12;
constexpr double kUnboundedStep = 1e300;

// A direction with at most this curvature is flat or concave; `scale` is the largest entry on the Hessian's diagonal.
TFGW_HD double flat_curvature(double scale) { return kFlatCurvature * scale; }

// Longest step: Newton's to the minimum, any other until a weight blocks it.
TFGW_HD double step_limit(bool newton) { return newton ? 1.0 : kUnboundedStep; }

}  // namespace tfgw

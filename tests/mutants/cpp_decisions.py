"""Mutants of the C++ core: one small change of a decision each, and why a survivor may survive."""

from typing import NamedTuple

CPP, CUDA = "src/tfgw/ot/cpp/", "src/tfgw/ot/cuda/"


class Mutant(NamedTuple):
    """`before` stands exactly once in the file; `after` takes its place."""

    file: str
    before: str
    after: str
    survives_because: str | None = None


def _rules(before: str, after: str, survives_because: str | None = None) -> Mutant:
    return Mutant(CUDA + "rules.cuh", before, after, survives_because)


def _start_rules(before: str, after: str, survives_because: str | None = None) -> Mutant:
    return Mutant(CUDA + "start_rules.cuh", before, after, survives_because)


def _core(file: str, before: str, after: str, survives_because: str | None = None) -> Mutant:
    return Mutant(CPP + file, before, after, survives_because)


# By the test in tests/ot that ought to notice; it runs first.
MUTANTS = {
    "bad_input": [
        _rules("kLargest = 1e100", "kLargest = 1e300"),
        _rules("alpha >= 0 && alpha <= 1", "alpha >= 0"),
        _rules("alpha >= 0 && alpha <= 1", "alpha <= 1"),
        _rules("magnitude(total - 1) <= tolerance", "magnitude(total - 1) <= 100 * tolerance"),
        _rules("magnitude(total - 1) <= tolerance", "total - 1 <= tolerance"),
        _rules("return magnitude(value) <= kLargest", "return value <= kLargest"),
    ],
    "fgw": [
        _rules("max_iter = 1, empty = 2", "max_iter = 2, empty = 1"),
        _core("fgw.cpp", "stationary ? Status::converged : Status::max_iter", "Status::converged"),
        _core("fgw.cpp", "best = std::min(best, linear", "best = std::max(best, linear"),
        _core("fgw.cpp", "graph_->square[i] + mean", "graph_->square[i] - mean"),
        _rules("larger(0.0, constants - 2 * squared)", "constants - 2 * squared"),
        _rules("lazy && !last ? kLazySweeps", "lazy ? kLazySweeps"),
        _rules("kLazySweeps = 2", "kLazySweeps = 1"),
        _rules("linear - 2 * alpha * squared;", "linear - alpha * squared;"),
        _rules("linear - 4 * alpha * squared - slope", "linear - 2 * alpha * squared - slope"),
        _rules("larger(0.0, linear - 4 * alpha * squared - slope)", "linear - 4 * alpha * squared - slope"),
        _rules("return tol * magnitude(value) + kRounding", "return 1e3 * tol * magnitude(value) + kRounding"),
        _rules("tol * magnitude(value) + kRounding * scale", "tol * magnitude(value)"),
        _rules("kRounding = 1e-14", "kRounding = 1e-8",
               "Frank-Wolfe over the hull ends in finitely many steps: gaps fall from 1e-6 of the scale to rounding"),
        _rules("own - 2 * mixed + squared", "own - mixed + squared"),
        _rules("return curvature - gap < -4 * tolerance;", "return false;"),
        _rules("return curvature - gap < -4 * tolerance;", "return curvature - gap < 4 * tolerance;"),
        _rules("gap / (2 * curvature)", "gap / curvature",
               "the descent over the hull, which follows a step below 1, finds the minimum from another point as well"),
        _rules("return curvature > 0 ?", "return curvature < 0 ?"),
        _core("fgw.cpp", "if (flat && outcome == Outcome::improved) continue;", ""),
        _core("fgw.cpp", "const bool stationary = flat && !tie_break;", "const bool stationary = flat;"),
        _core("fgw.cpp", "stationary && count_ == 1 && vertex.same_as(atoms_[0].plan)", "stationary"),
        _core("fgw.cpp", "if (step >= 1.0) {", "if (step >= 0.0) {"),
        _core("simplex_qp.cpp", "if (slope > 0)", "if (slope < 0)"),
        _core("simplex_qp.cpp", "weights[blocking] = 0;", "return;"),
        _core("simplex_qp.cpp", "face.hessian.push_back(-4 * alpha *", "face.hessian.push_back(-8 * alpha *",
              "a Newton step of half the length: more iterations to the same minimum"),
        _rules("return newton ? 1.0 : kUnboundedStep;", "return newton ? kUnboundedStep : 1.0;"),
    ],
    "linear_transport": [
        _rules("return 4 * kEpsilon * (rows + cols)", "return 4e9 * kEpsilon * (rows + cols)"),
        _rules("root ? rows + cols - 1 : -1", "root ? 0 : 1"),
        _rules("want < have ||", "want <= have ||"),
        _rules("extra_want < extra_have)", "extra_want > extra_have)"),
        _core("transport.cpp", "out[heaviest] += left;", ""),
        _core("transport.cpp", "clean_rows < rows_ ? Outcome::improved : Outcome::optimal", "Outcome::optimal"),
        _core("transport.cpp", "clean_rows = pivot_on_candidates(tree) ? 0 : clean_rows + last - first;",
              "clean_rows += last - first, pivot_on_candidates(tree);"),
        _core("transport.cpp", "lowest_[k] < 0", "lowest_[k] < -1e9 * eps_"),
        _core("transport.cpp", "regret[a] > regret[b]", "regret[a] < regret[b]",
              "another first basis: more pivots to an optimum of the same value"),
        _core("mask_tree.hpp", "any ? on_column_side : tied", "tied"),
        _core("mask_tree.hpp", "(depth(s) < depth(best)) == bool(any)", "(depth(s) < depth(best)) != bool(any)"),
        _core("mask_tree.hpp", "least ^= (least ^ flow) & less;", "least = flow;"),
        _core("linked_tree.cpp", "nodes_[b].flow <= col_min", "nodes_[b].flow < col_min"),
        _core("linked_tree.cpp", "row_min < col_min", "row_min <= col_min"),
    ],
    "spread_costs": [
        _rules("kCostShare = 1e-6", "kCostShare = 1e6"),
        _rules("kOracleShare = 1e-10", "kOracleShare = 1e10"),
        _core("fgw.cpp", "c > 0 ? std::min(smallest, c) : smallest", "std::min(smallest, c)",
              "refines wherever a plan pays nothing somewhere, which takes time and changes no plan"),
        _core("fgw.cpp", "std::abs(dropped) > kBoundRounding", "std::abs(dropped) < kBoundRounding"),
        _core("transport.cpp", "mass <= kEpsilon * (rows_ + cols_) && ", ""),
        _core("transport.cpp", " && mass <= kSplitRounding * ends", ""),
        _core("transport.cpp", "!pivoted_ && change <= rounding(largest)", "!pivoted_"),
        _core("transport.cpp", "!pivoted_ && change <= rounding(largest)", "false"),
        _core("transport.cpp", "pass < 2", "pass < 1"),
        _core("transport.cpp", "c < significant || c > 0 ? c : 0.0", "c"),
        _core("exact_sum.hpp", "if (lost != 0) parts_", "if (lost != 0 && kept == 0) parts_"),
        _core("exact_sum.hpp", "std::abs(sum) < std::abs(rest)", "std::abs(sum) > std::abs(rest)"),
    ],
    "starts": [
        _rules("kTieHops = 3", "kTieHops = 0"),
        _rules("kTieShare = 1e-6", "kTieShare = 1"),
        _rules("(1 - alpha) * norms - cost) + alpha", "(1 - alpha) * norms + cost) + alpha"),
        _start_rules("return a.key < b.key;", "return a.key > b.key;"),
        _start_rules("return kRounding * structure_scale;", "return structure_scale;"),
        _core("fgw.cpp", "product_says_nothing()) kinds -= kUniform;", "product_says_nothing()) {}"),
        _core("fgw.cpp", "if (options.starts > 1 && !improve(", "if (options.starts > 99 && !improve("),
        _start_rules("slope - 2 * alpha * a *", "slope + 2 * alpha * a *"),
        _core("exchange.cpp", "change < best.change", "change < 100 * best.change",
              "other exchanges first; it ends where no exchange is lower, too"),
    ],
    "canonical_order": [
        _core("canonical.cpp", "image < best_image_", "false",
              "for two leaves whose hashes are equal and whose graphs are not: a collision, which no test has"),
        _core("canonical.cpp", "        exact_ = false;\n", ""),
    ],
    "diagnose": [
        _core("fgw.cpp", "highest = std::max(highest, found.distance)", "highest = std::min(highest, found.distance)"),
        _core("fgw.cpp", "if (result.status != Status::converged) return false;", ""),
        _core("fgw.cpp", "value - kBoundRounding", "value + kBoundRounding"),
    ],
}  # fmt: skip

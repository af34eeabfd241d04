// Sums of doubles that are rounded only once, at the end.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

namespace tfgw {

// A sum stored as non-overlapping doubles, smallest first (Shewchuk, Adaptive Precision Floating-Point Arithmetic and
// Fast Robust Geometric Predicates, 1997). The terms and their partial sums must be finite.
class ExactSum {
 public:
  void clear() { parts_.clear(); }

  void add(double term) {
    size_t kept = 0;
    for (const double part : parts_) {
      double sum = term, rest = part;
      if (std::abs(sum) < std::abs(rest)) std::swap(sum, rest);
      const double total = sum + rest, lost = rest - (total - sum);
      if (lost != 0) parts_[kept++] = lost;
      term = total;
    }
    parts_.resize(kept);
    parts_.push_back(term);
  }

  // The sum as a double: its sign is correct, and it is exact up to the last bit.
  double value() const {
    double total = 0;
    for (const double part : parts_) total += part;
    return total;
  }

 private:
  std::vector<double> parts_;
};

}  // namespace tfgw

// The rules of several starts that the C++ core and the CUDA kernels share, as rules.cuh has those of one start: which
// start is of which kind, what a start pins or changes at random, and which result is kept.
#pragma once

#include "rules.cuh"

namespace tfgw {

// ---- Kinds of starts

// Bit flags, which can be combined.
enum StartKind : int { kGiven = 0, kUniform = 1, kAnchored = 2, kPerturbed = 4 };

constexpr int kStartsPerRound = 64, kFreshStarts = 8;  // starts in a round, and how many of them are fresh

// The kind of start number s = 0, 1, …, among the allowed ones. Starts come in rounds, in each of which a few fresh
// ones are followed by many near the minima that these have found.
TFGW_HD StartKind kind_of_start(int s, int kinds) {
  const bool fresh = s % kStartsPerRound < kFreshStarts || !(kinds & kPerturbed);
  if (!fresh || !(kinds & (kUniform | kAnchored))) return kPerturbed;
  if (!(kinds & kUniform)) return kAnchored;
  if (!(kinds & kAnchored)) return kUniform;
  return s == 0 || (s >= kStartsPerRound && s % 2 == 0) ? kUniform : kAnchored;
}

constexpr double kFlatGradient = 1e-12;  // smaller relative differences of a gradient count as zero

// Whether hh̄ᵀ is left out of the starts if the gradient there is the same for all couplings.
TFGW_HD bool may_skip_product(int starts, int kinds) { return starts > 1 && (kinds & kUniform) && (kinds & kAnchored); }

// ---- Anchored starts

// Steps of a walk at which it is sampled: every step near the pinned node, ever fewer far from it.
constexpr int kWalkSamples = 8;
TFGW_HD int sample_after(int steps) {  // the sample after that many steps, or −1
  return steps <= 4 ? steps : steps == 8 ? 5 : steps == 16 ? 6 : steps == 32 ? 7 : -1;
}

constexpr int kFirstLinks = 4, kOtherLinks = 2;

// One start: the ranks of the pinned template node and graph node, and of the template's link.
struct Pin {
  int template_rank, graph_rank, link;
};

// Ranks (0, 0) first; then (0, 1), (1, 0), (0, 2), (1, 1), (2, 0), …
TFGW_HD Pin pin(int index) {
  if (index < kFirstLinks) return {0, 0, index};
  int rest = (index - kFirstLinks) / kOtherLinks + 1, diagonal = 0;
  while (rest > diagonal) rest -= ++diagonal;
  return {rest, diagonal - rest, (index - kFirstLinks) % kOtherLinks};
}

// How badly two nodes match, from their feature cost and the sums of their mean weights to and from all nodes.
TFGW_HD double node_mismatch(double feature_cost, double alpha, double means, double template_means) {
  const double degree = 0.5 * (means - template_means);
  return feature_cost + alpha * degree * degree;
}

// Weight of the walks against features whose largest cost is given.
TFGW_HD double walk_scale(double alpha, double largest) { return alpha * (largest > 0 ? largest : 1.0); }

// ---- Perturbed starts

constexpr int kKeptMinima = 8;    // number of minima stored
constexpr int kLowestMinima = 4;  // a start is near one of this many lowest minima
constexpr int kPatchNodes = 8;    // nodes moved by a start
constexpr int kHops = 4;          // radius of the neighbourhood that determines a node's place in the order
constexpr double kSameValue = 1e-9;

// Random quantities drawn for a start; further draws are for pairs (node, template node).
enum Draw : int { kMinimum, kOther, kNode };

// A number in [0, 1) that is a function of its arguments (splitmix64).
TFGW_HD double draw(int index, int what, int which) {
  using u64 = unsigned long long;
  const u64 z = u64(index + 1) * kGoldenRatio + u64(what) * 0xD1B54A32D192ED03u + u64(which) * 0x8CB92BA72F3D8DD7u;
  return double(scramble(z) >> 11) * (1.0 / double(1LL << 53));
}

TFGW_HD int draw_below(int count, int index, int what) {
  const int drawn = int(draw(index, what, 0) * double(count));
  return drawn < count - 1 ? drawn : count - 1;
}

// Ranks, among `count` stored minima, of the minimum that a start is near, and of the other one if the start lies
// between two: its cost is then the mean of the gradients at both.
TFGW_HD int near_minimum(int count, int index) {
  return draw_below(count < kLowestMinima ? count : kLowestMinima, index, kMinimum);
}
TFGW_HD bool is_between_minima(int index) { return index % 2; }
TFGW_HD int other_minimum(int count, int index) { return draw_below(count, index, kOther); }

// A start moves this many nodes of a graph with n nodes: linked ones, breadth first. Nodes are taken in increasing
// order of `turn`, which is a function of their places.
TFGW_HD int patch_size(int n) { return n < kPatchNodes ? n : kPatchNodes; }
TFGW_HD double turn(int index, int place) { return draw(index, kNode, place); }

// Between −1 and 1, for the node at a place and node k of the template.
TFGW_HD double noise(int index, int place, int k) { return 2 * draw(index, kNode + 1 + place, k) - 1; }

// The lowest local minima so far, lowest first, each value once. Their gradients are stored elsewhere, in kKeptMinima
// slots.
struct LowestValues {
  int count;
  double value[kKeptMinima];
  int slot[kKeptMinima];

  // The slot for the gradient at a new minimum, or −1 if it is not stored.
  TFGW_HD int add(double found) {
    int place = 0;
    while (place < count && found > value[place] + kSameValue * magnitude(value[place])) ++place;
    if (place < count && found >= value[place] - kSameValue * magnitude(value[place])) return -1;
    if (place == kKeptMinima) return -1;
    const int free_slot = count < kKeptMinima ? count : slot[kKeptMinima - 1];
    if (count < kKeptMinima) ++count;
    for (int at = count - 1; at > place; --at) value[at] = value[at - 1], slot[at] = slot[at - 1];
    value[place] = found, slot[place] = free_slot;
    return free_slot;
  }
};

// ---- Exchanges (cpp/exchange.hpp)

constexpr int kMaxExchanges = 100;
constexpr double kLeastGain = 1e-10;  // of an exchange, relative to the value

// An exchange must lower E by more than this.
TFGW_HD double least_gain(double value, double structure_scale) {
  return kLeastGain * magnitude(value) + kRounding * (structure_scale + magnitude(value));
}

// Change of E if mass t moves: its slope, and a and b of exchange.hpp.
TFGW_HD double exchange_change(double mass, double slope, double alpha, double a, double b) {
  return mass * (slope - 2 * alpha * a * b * mass);
}

// ---- The result that is kept

// No value is below 0, so the first start at or below this value is the last.
TFGW_HD double value_floor(double structure_scale) { return kRounding * structure_scale; }

// Orders values by all but the last 12 bits of their binary representation, so that starts which end in the same minimum
// are equal. A function of the bits, because the cores get them in different ways.
TFGW_HD long long value_key(long long bits) { return (bits < 0 ? bits ^ 0x7fffffffffffffffLL : bits) >> 12; }

// The end of a start.
struct StartEnd {
  bool at_floor;
  long long key;
  int start;
};

// Whether `a` is kept rather than `b`. A total order, so the starts may end in any order.
TFGW_HD bool is_kept(const StartEnd& a, const StartEnd& b) {
  if (a.at_floor != b.at_floor) return a.at_floor;
  if (!a.at_floor && a.key != b.key) return a.key < b.key;
  return a.start < b.start;
}

}  // namespace tfgw

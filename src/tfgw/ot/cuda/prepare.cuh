// Second kernel, one warp per graph and per template: sorted rows, weights in fixed point, everything about one side
// of a pair that the solver would otherwise compute again for each pair. Checks every value on its way.
#pragma once

#include "bits.cuh"

namespace tfgw {

// Σ value(i), added up one after the other as the CPU core does: integers made of the sum decide ties.
template <class Value>
TFGW_DEVICE double ordered_sum(int count, Value value) {
  double total = 0;
  for (int first = 0; first < count; first += 32) {
    const double mine = first + lane() < count ? value(first + lane()) : 0.0;
    for (int s = 0; s < 32 && first + s < count; ++s) total += from_lane(mine, s);
  }
  return total;
}

// Weights that sum to 1, and the same as integers that sum to exactly 2^60. `least` is the smallest integer allowed.
// Returns false where they are not weights.
template <class Weight>
TFGW_DEVICE bool fix_weights(int count, Weight weight, double tolerance, i64 least, double* h, i64* fixed) {
  bool valid = true;
  for (int i = lane(); i < count; i += 32) valid = valid && weight(i) >= 0 && weight(i) <= kLargest;
  const double total = ordered_sum(count, weight);
  if (ballot(!valid) || !(magnitude(total - 1) <= tolerance)) return false;
  for (int i = lane(); i < count; i += 32) h[i] = weight(i) / total;
  const double scale = double(i64(1) << 60) / ordered_sum(count, [&](int i) { return h[i]; });
  i64 sum = 0, heaviest = -1;
  int heaviest_at = 0;
  for (int i = lane(); i < count; i += 32) {
    const i64 nearest = i64(h[i] * scale + 0.5);
    fixed[i] = nearest < least ? least : nearest;
    sum += fixed[i];
    if (fixed[i] > heaviest) heaviest = fixed[i], heaviest_at = i;
  }
  for (int distance = 1; distance < 32; distance *= 2) sum += across(sum, distance);
  const int owner = lane_of_least(~u64(heaviest), u32(heaviest_at));
  if (lane() == owner) fixed[heaviest_at] += (i64(1) << 60) - sum;  // rounding leaves a few units over or under
  sync();
  return true;
}

template <int P>
class GraphPreparer {
 public:
  TFGW_DEVICE GraphPreparer(const Problem& p, int b)
      : p_(p), b_(b), first_(p.ptr[b]), n_(p.ptr[b + 1] - p.ptr[b]) {}

  TFGW_DEVICE void run() {
    if (n_ == 0) return;
    if (!check_features()) return report_invalid(p_);
    const auto weight = [&](int i) { return p_.weights ? p_.weights[first_ + i] : 1.0 / n_; };
    if (!fix_weights(n_, weight, p_.weight_tolerance, 0, p_.h + first_, p_.supply + first_)) return report_invalid(p_);
    bool symmetric = true;
    if (p_.edge_index) {
      if (p_.queue[kUnsorted]) {
        sort_rows(p_.row_start, p_.row_length, p_.column, p_.edge_id, p_.value, p_.entry);
      } else {
        fill_rows();
      }
      if (is_full(p_, first_, n_)) fill_matrix();
      symmetric = equals_its_transpose();
      if (!symmetric) sort_rows(p_.t_start, p_.t_length, p_.t_column, p_.t_edge_id, p_.t_value, p_.t_entry);
      else if (!is_full(p_, first_, n_)) pack();
    }
    bool valid = true;
    double constant = 0;
    for (int i = lane(); i < n_; i += 32) {
      const Moments m = p_.edge_index ? sparse_moments(i, symmetric) : p_.dense ? dense_moments(i) : Moments{};
      p_.out_mean[first_ + i] = m.out, p_.in_mean[first_ + i] = m.in;
      p_.square[first_ + i] = m.square_out + m.square_in;
      constant += p_.h[first_ + i] * m.square_out;
      symmetric = symmetric && m.symmetric;
      valid = valid && m.valid;
    }
    constant = warp_sum(constant);
    const bool all_symmetric = ballot(!symmetric) == 0;
    if (ballot(!valid)) return report_invalid(p_);
    if (lane() == 0) p_.constant[b_] = constant, p_.symmetric[b_] = all_symmetric;
  }

 private:
  struct Moments {
    double out = 0, in = 0, square_out = 0, square_in = 0;
    bool symmetric = true, valid = true;
  };

  TFGW_DEVICE bool check_features() {
    bool valid = true;
    for (int i = lane(); i < n_; i += 32) {
      const double* x = p_.x + i64(first_ + i) * p_.features;
      double norm = 0;
      for (i64 c = 0; c < p_.features; ++c) norm += x[c] * x[c], valid = valid && usable(x[c]);
      p_.x_norm[first_ + i] = norm;
      if (!p_.cost) continue;
      const double* cost = p_.cost + i64(first_ + i) * p_.templates * p_.columns;
      for (i64 e = 0; e < p_.templates * p_.columns; ++e) valid = valid && usable(cost[e]);
    }
    if (p_.start)
      for (i64 e = lane(); e < i64(n_) * p_.templates * p_.columns; e += 32)
        valid = valid && usable(p_.start[i64(first_) * p_.templates * p_.columns + e]);
    return ballot(!valid) == 0;
  }

  // Of edges that are sorted already.
  TFGW_DEVICE void fill_rows() {
    bool valid = true;
    for (int e = p_.row_start[first_] + lane(); e < p_.row_start[first_ + n_]; e += 32) {
      const double v = p_.edge_weight ? p_.edge_weight[e] : 1.0;
      valid = valid && usable(v);
      p_.value[e] = v;
      p_.entry[e] = {v, int(p_.edge_index[e]) - first_, p_.column[e]};
    }
    if (!valid) report_invalid(p_);
    sync();
  }

  TFGW_DEVICE void sort_rows(const int* start, int* length, int* column, int* id, double* value, Entry* entry) {
    for (int i = lane(); i < n_; i += 32)
      sort_row(i, column, id, value, entry, start[first_ + i], length[first_ + i]);
    sync();
  }

  TFGW_DEVICE void fill_matrix() {
    double* const C = full_matrix(p_, first_);
    for (int e = lane(); e < n_ * n_; e += 32) C[e] = 0;
    sync();
    for (int e = p_.row_start[first_] + lane(); e < p_.row_start[first_ + n_]; e += 32) {
      const Entry a = p_.entry[e];
      if (a.weight != 0) C[a.row * n_ + a.col] = a.weight;
    }
  }

  // Whether every entry of C has its counterpart; the rows of Cᵀ are sorted only where not.
  TFGW_DEVICE bool equals_its_transpose() {
    bool symmetric = true;
    for (int e = p_.row_start[first_] + lane(); e < p_.row_start[first_ + n_]; e += 32) {
      const Entry a = p_.entry[e];
      if (a.weight == 0) continue;
      const int begin = p_.row_start[first_ + a.col], end = begin + p_.row_length[first_ + a.col];
      int low = begin, high = end;  // first entry of the row that is not before column a.row
      while (low < high) {
        const int middle = (low + high) / 2;
        if (p_.column[middle] < a.row) low = middle + 1;
        else high = middle;
      }
      symmetric = symmetric && low < end && p_.column[low] == a.row && p_.value[low] == a.weight;
    }
    return ballot(!symmetric) == 0;
  }

  // By column, then by place in `edge_index`; entries listed several times add up, and leave entries of weight 0 over.
  TFGW_DEVICE void sort_row(int i, int* column, int* id, double* value, Entry* entry, int first, int& length) {
    for (int e = first + 1; e < first + length; ++e) {
      const int c = column[e], d = id[e];
      int at = e;
      for (; at > first && (column[at - 1] > c || (column[at - 1] == c && id[at - 1] > d)); --at)
        column[at] = column[at - 1], id[at] = id[at - 1];
      column[at] = c, id[at] = d;
    }
    int kept = first - 1;
    for (int e = first; e < first + length; ++e) {
      const double v = p_.edge_weight ? p_.edge_weight[id[e]] : 1.0;
      if (!usable(v)) report_invalid(p_);
      if (kept >= first && column[kept] == column[e]) {
        value[kept] += v;
      } else {
        ++kept;
        column[kept] = column[e], value[kept] = v;
      }
    }
    for (int e = first; e < first + length; ++e) entry[e] = e <= kept ? Entry{value[e], i, column[e]} : Entry{0, i, 0};
    length = kept + 1 - first;
  }

  // `packed`, as problem.cuh describes it.
  TFGW_DEVICE void pack() {
    constexpr int kGroup = Shape<P>::kGroup, kTeam = 2 * kGroup;  // threads for a group
    const int *const start = p_.row_start + first_, *const length = p_.row_length + first_;
    int* const row_at = p_.packed_row + first_;
    for (int i = thread_in_block(); i < n_; i += threads_in_block()) {
      const int mine = length[i];
      int rank = 0;
#pragma unroll 8
      for (int j = 0; j < n_; ++j) rank += length[j] > mine || (length[j] == mine && j < i);
      row_at[rank] = i;
    }
    sync_block();
    const int groups = (n_ + kGroup - 1) / kGroup;
    int* const begin = packed_begin(p_, b_);
    if (thread_in_block() < 32) {
      int before = 0;
      for (int first = 0; first <= groups; first += 32) {
        const int q = first + lane(), size = q < groups ? kGroup * length[row_at[q * kGroup]] : 0;
        const int end = before + running_sum(size);
        if (q <= groups) begin[q] = end - size;
        before = from_lane(end, 31);
      }
    }
    sync_block();
    Entry* const out = p_.packed + packed_at(p_, first_);
    const int r = thread_in_block() % kGroup, depth = thread_in_block() % kTeam / kGroup;
    for (int q = thread_in_block() / kTeam; q < groups; q += threads_in_block() / kTeam) {
      const int at = q * kGroup + r, row = at < n_ ? row_at[at] : 0, here = at < n_ ? length[row] : 0;
      const int from = start[row], to = begin[q], width = (begin[q + 1] - to) / kGroup;
#pragma unroll 4
      for (int d = depth; d < width; d += kTeam / kGroup)
        out[to + d * kGroup + r] = d < here ? p_.entry[from + d] : Entry{0, row, 0};
    }
  }

  TFGW_DEVICE Moments sparse_moments(int i, bool symmetric) {
    Moments m;
    m.symmetric = symmetric;
    add_up(p_.row_start, p_.entry, i, m.out, m.square_out);
    if (symmetric) {
      m.in = m.out, m.square_in = m.square_out;
    } else {
      add_up(p_.t_start, p_.t_entry, i, m.in, m.square_in);
    }
    return m;
  }

  TFGW_DEVICE void add_up(const int* start, const Entry* entry, int i, double& mean, double& square) {
    const double* h = p_.h + first_;
    const int end = start[first_ + i + 1];
#pragma unroll 4
    for (int e = start[first_ + i]; e < end; ++e) {
      const Entry a = entry[e];
      mean += a.weight * h[a.col], square += a.weight * a.weight * h[a.col];
    }
  }

  TFGW_DEVICE Moments dense_moments(int i) {
    Moments m;
    const double* C = p_.dense + p_.dense_at[b_];
    for (int j = 0; j < n_; ++j) {
      const double forth = C[i64(i) * n_ + j], back = C[i64(j) * n_ + i], h = p_.h[first_ + j];
      m.out += forth * h, m.square_out += forth * forth * h;
      m.in += back * h, m.square_in += back * back * h;
      m.symmetric = m.symmetric && forth == back;
      m.valid = m.valid && usable(forth);
    }
    return m;
  }

  const Problem& p_;
  const int b_, first_, n_;
};

class TemplatePreparer {
 public:
  TFGW_DEVICE TemplatePreparer(const Problem& p, int k)
      : p_(p), k_(k), columns_(int(p.columns)), padded_(int(p.padded)), live_(p.live + i64(k) * p.padded) {}

  TFGW_DEVICE void run() {
    if (!check()) return report_invalid(p_);
    find_live();
    const double* weights = p_.template_weights + i64(k_) * columns_;
    double* h = p_.t_h + i64(k_) * padded_;
    if (!fix_weights(count_, [&](int l) { return weights[live_[l]]; }, p_.weight_tolerance, 1, h,
                     p_.demand + i64(k_) * padded_))
      return report_invalid(p_);
    features();
    if (p_.template_structure) structure(h);
  }

 private:
  TFGW_DEVICE bool check() {
    const i64 m = columns_, d = p_.features;
    bool valid = p_.alpha[k_] >= 0 && p_.alpha[k_] <= 1;
    for (i64 e = lane(); e < m; e += 32) valid = valid && p_.template_weights[k_ * m + e] >= 0;
    for (i64 e = lane(); e < m * d; e += 32) valid = valid && usable(p_.template_x[k_ * m * d + e]);
    for (i64 e = lane(); e < m * m && p_.template_structure; e += 32)
      valid = valid && usable(p_.template_structure[k_ * m * m + e]);
    return ballot(!valid) == 0;
  }

  // The nodes that have weight, by weight and features, so that how they are numbered does not matter as long as no two
  // are equal in both. (The CPU core also tells those apart, by structure.)
  TFGW_DEVICE void find_live() {
    const double* weights = p_.template_weights + i64(k_) * columns_;
    const double* x = p_.template_x + i64(k_) * columns_ * p_.features;
    const auto comes_before = [&](int a, int b) {
      if (weights[a] != weights[b]) return weights[a] < weights[b];
      for (i64 c = 0; c < p_.features; ++c) {
        const double f = x[a * p_.features + c], g = x[b * p_.features + c];
        if (f != g) return f < g;
      }
      return a < b;
    };
    for (int l = 0; l < columns_; ++l) {
      if (!(weights[l] > 0)) continue;
      int rank = 0;
      for (int first = 0; first < columns_; first += 32) {
        const int other = first + lane();
        const bool kept = other < columns_ && other != l && weights[other] > 0;
        rank += bits_set(ballot(kept && comes_before(other, l)));
      }
      if (lane() == 0) live_[rank] = l;
      ++count_;
    }
    if (lane() == 0) p_.live_count[k_] = count_;
    sync();
  }

  TFGW_DEVICE void features() {
    const i64 d = p_.features;
    for (int l = lane(); l < padded_; l += 32) {
      double norm = 0;
      for (i64 c = 0; c < d; ++c) {
        const double f = l < count_ ? p_.template_x[(i64(k_) * columns_ + live_[l]) * d + c] : 0.0;
        p_.ft[(k_ * d + c) * padded_ + l] = f;
        norm += f * f;
      }
      p_.t_norm[i64(k_) * padded_ + l] = norm;
    }
  }

  TFGW_DEVICE void structure(const double* h) {
    const double* S = p_.template_structure + i64(k_) * columns_ * columns_;
    double constant = 0;
    for (int a = lane(); a < columns_; a += 32) {
      double out = 0, in = 0, weight = 0;
      for (int l = 0; l < count_; ++l) {
        const double forth = S[a * columns_ + live_[l]], back = S[live_[l] * columns_ + a];
        out += forth * forth * h[l], in += back * back * h[l];
        if (live_[l] == a) weight = h[l];
      }
      p_.t_square[i64(k_) * columns_ + a] = out + in;
      constant += weight * out;
    }
    constant = warp_sum(constant);
    if (lane() == 0) p_.t_constant[k_] = constant;
    const i64 base = i64(k_) * padded_ * padded_;
    for (int a = lane(); a < padded_; a += 32) {
      double out = 0, in = 0;
      for (int l = 0; l < padded_; ++l) {
        const bool kept = a < count_ && l < count_;
        const double forth = kept ? S[live_[a] * columns_ + live_[l]] : 0.0;
        const double back = kept ? S[live_[l] * columns_ + live_[a]] : 0.0;
        const i64 at = base + i64(a) * padded_ + l;
        p_.C[at] = forth, p_.Ct[at] = back, p_.mean[at] = 0.5 * (forth + back);
        if (kept) out += forth * h[l], in += back * h[l];
      }
      p_.t_mean_out[i64(k_) * padded_ + a] = out, p_.t_mean_in[i64(k_) * padded_ + a] = in;
    }
  }

  const Problem& p_;
  const int k_, columns_, padded_;
  int* const live_;
  int count_ = 0;
};

}  // namespace tfgw

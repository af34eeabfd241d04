// Kernel `prepare` for a graph: sorts and packs its rows, converts its weights to fixed point, computes its moments.
#pragma once

#include "prepare.cuh"

namespace tfgw {

template <int P>
class GraphPreparer {
 public:
  TFGW_DEVICE GraphPreparer(const Problem& p, int b, PrepareMemory<P>& memory)
      : p_(p), b_(b), first_(p.ptr[b]), n_(p.ptr[b + 1] - p.ptr[b]), shared_(memory) {}

  TFGW_DEVICE void run() {
    if (was_invalid(p_) || n_ == 0) return;
    bool sorted = true, symmetric = true;
    bool valid = check_features();
    if (p_.edge_index) valid &= fill_rows(sorted);
    if (in_last_warp()) valid &= weigh();
    if (!all_valid(p_, valid)) return;
    if (p_.edge_index) {
      if (any_in_block(!sorted)) sort_rows();
      const bool full = is_full(p_, first_, n_);
      if (full) fill_matrix();
      symmetric = !any_in_block(!equals_its_transpose(full));
      if (!symmetric) transpose();
      else if (!full) pack();
    }
    double constant = 0;
    each_row(n_, [&](int i, int place) {
      Moments m;
      if (i < n_) m = p_.edge_index ? sparse_moments(i, place, symmetric) : p_.dense ? dense_moments(i, place) : m;
      row_sums(m.out, m.in, m.square_out, m.square_in);
      symmetric &= m.symmetric;
      valid &= m.valid;
      if (i >= n_ || place != 0) return;
      p_.out_mean[first_ + i] = m.out, p_.in_mean[first_ + i] = m.in;
      p_.square[first_ + i] = m.square_out + m.square_in;
      constant += p_.h[first_ + i] * m.square_out;
    });
    if (!all_valid(p_, valid)) return;
    symmetric = !any_in_block(!symmetric);
    constant = block_sum(constant, shared_);
    if (thread_in_block() == 0) p_.constant[b_] = constant, p_.symmetric[b_] = symmetric;
  }

 private:
  struct Moments {
    double out = 0, in = 0, square_out = 0, square_in = 0;
    bool symmetric = true, valid = true;
  };

  TFGW_DEVICE bool weigh() {
    const double uniform = 1.0 / n_;
    const auto weight = [&](int i) { return p_.weights ? read_only(p_.weights + first_ + i) : uniform; };
    return fix_weights(n_, weight, p_.weight_tolerance, 0, p_.h + first_, p_.supply + first_);
  }

  TFGW_DEVICE bool check_features() {
    const i64 d = p_.features, entries = p_.templates * p_.columns;
    bool valid = true;
    if (p_.cost) valid &= all_usable(p_.cost + first_ * entries, n_ * entries);
    if (p_.start) valid &= all_usable(p_.start + first_ * entries, n_ * entries);
    each_row(n_, [&](int i, int place) {
      const double norm = squared_norm(p_.x + (first_ + i) * d, i < n_ ? d : 0, place, valid);
      if (i < n_ && place == 0) p_.x_norm[first_ + i] = norm;
    });
    return valid;
  }

  TFGW_DEVICE int first_entry() const { return p_.row_start[first_]; }
  TFGW_DEVICE int entries() const { return p_.row_start[first_ + n_] - p_.row_start[first_]; }

  // The edge at a position of the rows before they are sorted.
  TFGW_DEVICE int edge_at(int at) const { return p_.queue[kUnsorted] ? p_.edge_id[at] : at; }
  TFGW_DEVICE i64 column_of(int edge) const { return read_only(p_.edge_index + p_.edges + edge) - first_; }
  TFGW_DEVICE Entry entry_of(int edge) const {
    const int row = int(read_only(p_.edge_index + edge)) - first_, column = int(column_of(edge));
    const double listed = row == column ? 0.0 : 1.0;  // without weights, edges are a set, without loops
    return {p_.edge_weight ? read_only(p_.edge_weight + edge) : listed, row, column};
  }

  TFGW_DEVICE void put(int at, const Entry& a) { p_.entry[at] = a, p_.column[at] = a.col, p_.value[at] = a.weight; }

  // Rows as listed. Determines whether they are sorted and distinct. Returns false if an edge leaves the graph.
  TFGW_DEVICE bool fill_rows(bool& sorted) {
    struct Listed {
      Entry entry;
      bool inside, follows;
    };
    const int begin = first_entry();
    const bool scattered = p_.queue[kUnsorted];
    bool valid = true;
    each(entries(), [&](int s) {
      const int edge = edge_at(begin + s);
      const i64 column = column_of(edge);
      const Entry a = entry_of(edge);
      const int before = s > 0 && !scattered ? edge - 1 : edge;
      const i64 row_before = read_only(p_.edge_index + before) - first_, column_before = column_of(before);
      const bool after = s == 0 || row_before != a.row || column_before < column;
      return Listed{a, column >= 0 && column < n_, !scattered && after};
    }, [&](int s, const Listed& a) {
      valid &= a.inside && usable(a.entry.weight);
      sorted &= a.follows;
      put(begin + s, a.entry);
    });
    each(n_, [&](int i) { p_.row_length[first_ + i] = p_.row_start[first_ + i + 1] - p_.row_start[first_ + i]; });
    return valid;
  }

  // Sorts by column, then by position in `edge_index`. Repeated entries add up if there are weights, else they count once.
  TFGW_DEVICE void sort_rows() {
    const int begin = first_entry(), count = entries();
    each(count, [&](int s) {
      const int edge = edge_at(begin + s);
      const Entry a = entry_of(edge);
      const int from = p_.row_start[first_ + a.row], end = p_.row_start[first_ + a.row + 1];
      int rank = 0;
#pragma unroll 4
      for (int at = from; at < end; ++at) {
        const int other = edge_at(at), column = int(column_of(other));
        rank += column < a.col || (column == a.col && other < edge);
      }
      put(from + rank, a);
    });
    sync_block();
    bool repeated = false;
    each(count, [&](int s) {
      const Entry a = p_.entry[begin + s], before = p_.entry[begin + (s > 0 ? s - 1 : 0)];
      repeated |= s > 0 && a.row == before.row && a.col == before.col;
    });
    if (!any_in_block(repeated)) return;
    each(n_, [&](int i) { merge_row(i); });
    sync_block();
  }

  // Pads the row with entries of weight 0.
  TFGW_DEVICE void merge_row(int i) {
    const int first = p_.row_start[first_ + i], end = p_.row_start[first_ + i + 1];
    int kept = first - 1;
#pragma unroll 1
    for (int e = first; e < end; ++e) {
      Entry a = p_.entry[e];
      if (kept >= first && p_.column[kept] == a.col) {
        if (p_.edge_weight) a.weight += p_.value[kept];
      } else {
        ++kept;
      }
      put(kept, a);
    }
#pragma unroll 1
    for (int e = kept + 1; e < end; ++e) p_.entry[e] = {0, i, 0};
    p_.row_length[first_ + i] = kept + 1 - first;
  }

  TFGW_DEVICE void fill_matrix() {
    const int begin = first_entry();
    double* const C = full_matrix(p_, first_);
    each(i64(n_) * n_, [&](i64 e) { C[e] = 0; });
    sync_block();
    each(entries(), [&](int s) { return p_.entry[begin + s]; }, [&](int, const Entry& a) {
      if (a.weight != 0) C[i64(a.row) * n_ + a.col] = a.weight;
    });
    sync_block();
  }

  // Whether the entries of C that this thread checks equal those of Cᵀ.
  TFGW_DEVICE bool equals_its_transpose(bool full) {
    const int begin = first_entry();
    const double* const C = full_matrix(p_, first_);
    bool symmetric = true;
    if (full) {
      each(entries(), [&](int s) {
        const Entry a = p_.entry[begin + s];
        return a.weight == 0 || a.weight == C[i64(a.col) * n_ + a.row];
      }, [&](int, bool same) { symmetric &= same; });
    } else {
      each(entries(), [&](int s) {
        const Entry a = p_.entry[begin + s];
        symmetric &= a.weight == 0 || a.weight == find(a.col, a.row);
      });
    }
    return symmetric;
  }

  TFGW_DEVICE double find(int row, int column) {
    const int begin = p_.row_start[first_ + row], end = begin + p_.row_length[first_ + row];
    int low = begin, high = end;  // first entry of the row that is not before the column
    while (low < high) {
      const int middle = (low + high) / 2;
      if (p_.column[middle] < column) low = middle + 1;
      else high = middle;
    }
    return low < end && p_.column[low] == column ? p_.value[low] : 0.0;
  }

  // The rows of Cᵀ, including padding entries of weight 0.
  TFGW_DEVICE void transpose() {
    const int begin = first_entry(), count = entries();
    int *const start = p_.t_start + first_, *const length = p_.t_length + first_;
    each(n_, [&](int j) { length[j] = 0; });
    sync_block();
    each(count, [&](int s) { atomic_add(&length[p_.entry[begin + s].col], 1); });
    sync_block();
    if (in_last_warp())
      running_sums(n_, [&](int j) { return length[j]; }, [&](int j, int sum) { start[j] = begin + sum; });
    sync_block();
    each(n_, [&](int j) { length[j] = 0; });
    sync_block();
    each(count, [&](int s) {
      const int j = p_.entry[begin + s].col;
      p_.edge_id[start[j] + atomic_add(&length[j], 1)] = begin + s;
    });
    sync_block();
    each(count, [&](int s) {
      const int e = p_.edge_id[begin + s];
      const Entry a = p_.entry[e];
      int to = start[a.col];
#pragma unroll 4
      for (int at = start[a.col], end = start[a.col + 1]; at < end; ++at) to += p_.edge_id[at] < e;
      p_.t_entry[to] = {a.weight, a.col, a.row}, p_.t_column[to] = a.row, p_.t_value[to] = a.weight;
    });
    sync_block();
  }

  // The packed format (problem.cuh).
  TFGW_DEVICE void pack() {
    constexpr int kGroup = Shape<P>::kGroup, kThreads = 2 * kGroup;  // threads per group
    const int *const start = p_.row_start + first_, *const length = p_.row_length + first_;
    int* const row_at = p_.packed_row + first_;
    each_row(n_, [&](int i, int place) {
      const int mine = i < n_ ? length[i] : 0;
      int rank = 0;
      unrolled<8>(place, n_, kRowThreads, [&](int j) { return length[j]; },
               [&](int j, int other) { rank += other > mine || (other == mine && j < i); });
      row_sums(rank);
      if (i < n_ && place == 0) row_at[rank] = i;
    });
    sync_block();
    const int groups = (n_ + kGroup - 1) / kGroup;
    int* const begin = packed_begin(p_, b_);
    if (in_last_warp())
      running_sums(groups, [&](int q) { return kGroup * length[row_at[q * kGroup]]; },
                   [&](int q, int sum) { begin[q] = sum; });
    sync_block();
    Entry* const out = p_.packed + packed_at(p_, first_);
    const int r = thread_in_block() % kGroup, depth = thread_in_block() % kThreads / kGroup;
    for (int q = thread_in_block() / kThreads; q < groups; q += threads_in_block() / kThreads) {
      const int at = q * kGroup + r, row = at < n_ ? row_at[at] : 0, here = at < n_ ? length[row] : 0;
      const int from = start[row], to = begin[q], width = (begin[q + 1] - to) / kGroup;
#pragma unroll 4
      for (int d = depth; d < width; d += kThreads / kGroup)
        out[to + d * kGroup + r] = d < here ? p_.entry[from + d] : Entry{0, row, 0};
    }
  }

  TFGW_DEVICE Moments sparse_moments(int i, int place, bool symmetric) {
    Moments m;
    add_up(p_.row_start, p_.entry, i, place, m.out, m.square_out);
    if (symmetric) {
      m.in = m.out, m.square_in = m.square_out;
    } else {
      add_up(p_.t_start, p_.t_entry, i, place, m.in, m.square_in);
    }
    return m;
  }

  TFGW_DEVICE void add_up(const int* start, const Entry* entry, int i, int place, double& mean, double& square) {
    struct Term {
      double weight, h;
    };
    unrolled<4>(start[first_ + i] + place, start[first_ + i + 1], kRowThreads, [&](int e) {
      const Entry a = entry[e];
      return Term{a.weight, p_.h[first_ + a.col]};
    }, [&](int, Term t) { mean += t.weight * t.h, square += t.weight * t.weight * t.h; });
  }

  TFGW_DEVICE Moments dense_moments(int i, int place) {
    Moments m;
    const double* C = p_.dense + p_.dense_at[b_];
    unrolled<4>(place, n_, kRowThreads, [&](int j) {
      return Weighed{read_only(C + i64(i) * n_ + j), read_only(C + i64(j) * n_ + i), p_.h[first_ + j]};
    }, [&](int, const Weighed& c) {
      m.out += c.forth * c.h, m.square_out += c.forth * c.forth * c.h;
      m.in += c.back * c.h, m.square_in += c.back * c.back * c.h;
      m.symmetric &= c.forth == c.back;
      m.valid &= usable(c.forth);
    });
    return m;
  }

  const Problem& p_;
  const int b_, first_, n_;
  PrepareMemory<P>& shared_;
};

}  // namespace tfgw

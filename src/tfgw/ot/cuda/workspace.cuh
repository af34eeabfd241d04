// Where one pair's solve keeps what does not fit into registers.
#pragma once

#include "cross.cuh"
#include "simplex_qp.cuh"

namespace tfgw {

// A block's part of the working memory, laid out for the largest graph of the batch.
template <int P>
class Workspace {
 public:
  static constexpr int kMatrices = 8;  // besides the atoms'

  TFGW_DEVICE static i64 size(int rows) {
    const i64 entries = rows + P;
    return i64(rows) * P * (kMatrices + kMaxAtoms)        // matrices
           + 2 * entries * kMaxAtoms                      // plans: mass, and row with column
           + 6 * entries                                  // per row
           + kMaxAtoms * kMaxAtoms + sizeof(QpMemory) / sizeof(double) + 1;
  }

  TFGW_DEVICE Workspace(double* memory, int rows) : next_(memory), rows_(rows) {
    linear = matrix(), gradient = matrix(), tie_broken = matrix(), similarity = matrix();
    scratch = matrix(), half = matrix(), best = matrix(), given = matrix();
    cross_ = next_, next_ += i64(rows) * P * kMaxAtoms;
    mass_ = next_, next_ += i64(rows + P) * kMaxAtoms;
    place_ = reinterpret_cast<int*>(next_), next_ += i64(rows + P) * kMaxAtoms;
    Q = next_, next_ += kMaxAtoms * kMaxAtoms;
    u = per_row(), base = per_row(), regret = per_row(), best_u = per_row(), best_v = per_row();
    anchor = reinterpret_cast<int*>(per_row());
    order = anchor + rows + P;
    qp = reinterpret_cast<QpMemory*>(next_);
  }

  TFGW_DEVICE double* cross(int atom) const { return cross_ + i64(atom) * rows_ * P; }
  TFGW_DEVICE VertexPlan plan(int atom) const {
    int* place = place_ + i64(atom) * 2 * (rows_ + P);
    return {{0, 0}, place, place + rows_ + P, mass_ + i64(atom) * (rows_ + P)};
  }

  double *linear, *gradient, *tie_broken, *similarity, *scratch, *half, *best, *given;  // (rows, P)
  double *Q, *u, *base, *regret, *best_u, *best_v;
  int *anchor, *order;
  QpMemory* qp;

 private:
  TFGW_DEVICE double* matrix() { return next_ += i64(rows_) * P, next_ - i64(rows_) * P; }
  TFGW_DEVICE double* per_row() { return next_ += rows_ + P, next_ - (rows_ + P); }

  double* next_;
  const int rows_;
  double *cross_, *mass_;
  int* place_;
};

}  // namespace tfgw

// Where one pair's solve keeps what does not fit into registers.
#pragma once

#include "cross.cuh"
#include "simplex_qp.cuh"

namespace tfgw {

// Shared memory first, as far as it goes; then the block's part of the working memory, which has room for everything.
class Arena {
 public:
  TFGW_DEVICE Arena(char* shared, int shared_size, char* global) : shared_(shared), left_(shared_size), global_(global) {}

  template <class T>
  TFGW_DEVICE T* take(int count) {
    const int bytes = rounded(count * int(sizeof(T)));
    if (bytes > left_) return take_global<T>(count);
    left_ -= bytes;
    return reinterpret_cast<T*>((shared_ += bytes) - bytes);
  }
  template <class T>
  TFGW_DEVICE T* take_global(i64 count) {
    const i64 bytes = rounded(count * i64(sizeof(T)));
    return reinterpret_cast<T*>((global_ += bytes) - bytes);
  }

 private:
  template <class Int>
  TFGW_DEVICE static Int rounded(Int bytes) {
    return (bytes + 15) / 16 * 16;
  }

  char* shared_;
  int left_;
  char* global_;
};

// For a graph of `rows` nodes. What is used most comes first. The cross terms and plans of all atoms are in global
// memory; those of the newest one are also here.
template <int P>
class Workspace {
 public:
  TFGW_DEVICE static i64 size(int rows) {  // in doubles, if all of it is in global memory
    const i64 entries = rows + P;
    return i64(rows) * P * (6 + kMaxAtoms)                // matrices
           + 2 * entries * (1 + kMaxAtoms)                // plans
           + 8 * entries                                  // per row
           + 3 * kMaxAtoms * kMaxAtoms + 64;
  }

  TFGW_DEVICE Workspace(Arena arena, int rows) : rows_(rows) {
    new_plan = arena.take<Entry>(rows + P);
    Q.small = arena.take<double>(AtomMatrix::kSmall * AtomMatrix::kSmall);
    qp.hessian.small = arena.take<double>(AtomMatrix::kSmall * AtomMatrix::kSmall);
    qp.move = arena.take<double>(kMaxAtoms), qp.atom = arena.take<int>(kMaxAtoms);
    regret = arena.take<double>(rows), order = arena.take<int>(rows), supply = arena.take<i64>(rows);
    best_u = arena.take<double>(rows), best_v = arena.take<double>(P);
    gradient = arena.take<double>(rows * P), linear = arena.take<double>(rows * P);
    new_cross = arena.take<double>(rows * P), spare = arena.take<double>(rows * P);
    half = arena.take_global<double>(i64(rows) * P), given = arena.take_global<double>(i64(rows) * P);
    Q.large = arena.take_global<double>(kMaxAtoms * kMaxAtoms);
    qp.hessian.large = arena.take_global<double>(kMaxAtoms * kMaxAtoms);
    row_arrays.anchor = arena.take_global<int>(rows), row_arrays.begin = arena.take_global<int>(rows + 1);
    row_arrays.base = arena.take_global<double>(rows), row_arrays.u = arena.take_global<double>(rows);
    cross_ = arena.take_global<double>(i64(rows) * P * kMaxAtoms);
    plans_ = arena.take_global<Entry>(i64(rows + P) * kMaxAtoms);
  }

  TFGW_DEVICE double* cross(int atom) const { return cross_ + i64(atom) * rows_ * P; }
  TFGW_DEVICE Entry* plan(int atom) const { return plans_ + i64(atom) * (rows_ + P); }

  double *gradient, *linear, *new_cross, *spare, *half, *given;  // (rows, P)
  double *regret, *best_u, *best_v;
  int* order;
  i64* supply;
  RowArrays row_arrays;
  Entry* new_plan;
  AtomMatrix Q;
  QpMemory qp;

 private:
  const int rows_;
  double* cross_;
  Entry* plans_;
};

}  // namespace tfgw

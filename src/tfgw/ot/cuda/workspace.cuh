// The memory of one pair's solve.
#pragma once

#include "cross.cuh"
#include "simplex_qp.cuh"

namespace tfgw {

// Bytes of an array, aligned to 16.
template <class T, class Int>
TFGW_DEVICE Int bytes_of(Int count) {
  return (count * Int(sizeof(T)) + 15) / 16 * 16;
}

class GlobalArena {
 public:
  TFGW_DEVICE explicit GlobalArena(char* at) : at_(at) {}
  template <class T>
  TFGW_DEVICE T* take_global(i64 count) {
    const i64 bytes = bytes_of<T>(count);
    return reinterpret_cast<T*>((at_ += bytes) - bytes);
  }

 private:
  char* at_;
};

// Shared memory that is known to be large enough, so the compiler knows the address space.
class SharedArena : public GlobalArena {
 public:
  TFGW_DEVICE explicit SharedArena(char* shared, int = 0, char* global = nullptr) : GlobalArena(global), at_(shared) {}
  template <class T>
  TFGW_DEVICE T* take(int count) {
    const int bytes = bytes_of<T>(count);
    return reinterpret_cast<T*>((at_ += bytes) - bytes);
  }

 private:
  char* at_;
};

// Measures how much shared memory is needed.
class SharedSize : public GlobalArena {
 public:
  TFGW_DEVICE SharedSize() : GlobalArena(nullptr) {}
  template <class T>
  TFGW_DEVICE T* take(int count) {
    bytes_ += bytes_of<T>(i64(count));
    return nullptr;
  }
  TFGW_DEVICE i64 bytes() const { return bytes_; }

 private:
  i64 bytes_ = 0;
};

// Shared memory until it runs out, then the team's part of global memory, which is large enough for everything.
class SpillArena : public GlobalArena {
 public:
  TFGW_DEVICE SpillArena(char* shared, int shared_size, char* global)
      : GlobalArena(global), shared_(shared), left_(shared_size) {}
  template <class T>
  TFGW_DEVICE T* take(int count) {
    const i64 bytes = bytes_of<T>(i64(count));
    if (bytes > left_) return take_global<T>(count);
    left_ -= int(bytes);
    return reinterpret_cast<T*>((shared_ += bytes) - bytes);
  }

 private:
  char* shared_;
  int left_;
};

// For a graph of `rows` nodes and a template of `cols`, the most frequently used arrays first. The cross terms and
// plans of all atoms are in global memory; those of the newest atom are also kept here. Its cross term is in shared
// memory only if `kCross`, and the template's table only if `kTable`.
template <int P, bool kShared, int kAtoms = kSharedAtoms, bool kCross = true, bool kTable = true>
class Workspace {
 public:
  // In doubles, if all of it is in global memory; even, because loads have 16 bytes.
  TFGW_DEVICE static i64 size(int rows) {
    const i64 entries = rows + P;
    return i64(rows) * P * (4 + kMaxAtoms)                // matrices
           + 2 * entries * (1 + kMaxAtoms)                // plans
           + 6 * entries + 4 * i64(rows)                  // per row
           + 3 * kMaxAtoms * kMaxAtoms + 64
           + (P > 128 ? i64(P) * P / 16 + 8 * P : 0);     // the basis, if it is wide
  }

  // `packed` is the number of entries of a sparse structure with its padding.
  template <class Arena>
  TFGW_DEVICE Workspace(Arena& arena, int rows, int cols, int packed) : rows_(rows) {
    new_plan = arena.template take<Entry>(rows + P);
    Q.small = arena.template take<double>(kAtoms * kAtoms);
    qp.hessian.small = arena.template take<double>(kAtoms * kAtoms);
    qp.move = arena.template take<double>(kMaxAtoms), qp.atom = arena.template take<int>(kMaxAtoms);
    if constexpr (kShared) {
      shared.take(arena, rows, kTable ? cols : 0, packed, kPitch<P>, Shape<P>::groups(rows));
      shared.place = arena.template take<int>(rows);
    } else {
      row_arrays.anchor = arena.template take<int>(rows), row_arrays.base = arena.template take<double>(rows);
      row_arrays.u = arena.template take<double>(rows);
    }
    gradient = arena.template take<double>(rows * kPitch<P>);
    if constexpr (kCross) new_cross = arena.template take<double>(rows * P);
    else new_cross = arena.template take_global<double>(i64(rows) * P);
    given = arena.template take_global<double>(i64(rows) * P);
    if constexpr (!kShared) half = arena.template take_global<double>(i64(rows) * P);
    Q.large = arena.template take_global<double>(kMaxAtoms * kMaxAtoms);
    qp.hessian.large = arena.template take_global<double>(kMaxAtoms * kMaxAtoms);
    cross_ = arena.template take_global<double>(i64(rows) * P * kMaxAtoms);
    plans_ = arena.template take_global<Entry>(i64(rows + P) * kMaxAtoms);
  }

  TFGW_DEVICE double* cross(int atom) const { return cross_ + i64(atom) * rows_ * P; }
  TFGW_DEVICE Entry* plan(int atom) const { return plans_ + i64(atom) * (rows_ + P); }

  double *gradient, *new_cross;                      // (rows, P); the gradient has room for kPitch numbers per row
  double *given, *half = nullptr;                    // (rows, P), in global memory
  RowArrays row_arrays{};
  Entry* new_plan;
  AtomMatrix<kAtoms> Q;
  QpMemory<kAtoms> qp;
  SharedStructure shared{};

 private:
  const int rows_;
  double* cross_;
  Entry* plans_;
};

}  // namespace tfgw

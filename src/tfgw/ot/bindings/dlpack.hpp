// The part of DLPack's interface (version 1) that gives access to the memory of a tensor passed as a Python object. The
// structs follow the standard's layout.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace tfgw::dlpack {

namespace nb = nanobind;

struct Device {
  int32_t kind, index;
};

constexpr int32_t kHost = 1;                    // of kinds
constexpr uint8_t kInteger = 0, kFloating = 2;  // of codes
struct Type {
  uint8_t code, bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t dims;
  Type type;
  int64_t *shape, *strides;
  uint64_t offset;  // in bytes
};

// Fills in a description that is valid while the object lives. Returns nonzero and sets a Python exception if the
// object has none.
using Describe = int (*)(void* object, Tensor* out);

struct Table {
  uint32_t major, minor;
  void* older;
  void *allocate, *from_object, *to_object;
  Describe describe;
  void* current_stream;
};

// The function of a tensor class, or null if the class has no such table.
inline Describe table_of(nb::handle type) {
  constexpr const char* kAttribute = "__dlpack_c_exchange_api__";
  if (!nb::hasattr(type, kAttribute)) return nullptr;
  const nb::object capsule = type.attr(kAttribute);
  const auto* const table = static_cast<const Table*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (!table) PyErr_Clear();
  return table && table->major == 1 ? table->describe : nullptr;
}

}  // namespace tfgw::dlpack

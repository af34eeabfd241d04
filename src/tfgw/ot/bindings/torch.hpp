// Access to PyTorch from native code: where tensors are, what they hold, and how to create them. DLPack's function
// table locates a tensor in a twentieth of a microsecond; older versions of PyTorch lack it and are called through
// Python, with every name looked up once.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

#include "dlpack.hpp"

namespace tfgw {

namespace nb = nanobind;
using i64 = long long;

class Torch {
 public:
  Torch() {
    const nb::module_ torch = nb::module_::import_("torch");
    empty_ = torch.attr("empty"), empty_like_ = torch.attr("empty_like");
    float64_ = torch.attr("float64"), float32_ = torch.attr("float32"), int64_ = torch.attr("int64");
    uint8_ = torch.attr("uint8"), int32_ = torch.attr("int32");
    tensor_ = torch.attr("Tensor"), parameter_ = torch.attr("nn").attr("Parameter");
    describe_ = dlpack::table_of(tensor_);
  }

  enum Kind { kFloat64, kFloat32, kInt64, kOther };

  // A tensor as seen by native code; not `known` if it has no memory of its own, like a sparse tensor.
  struct TensorInfo {
    bool known = false, contiguous = false;
    Kind kind = kOther;
    int dims = 0;
    std::array<i64, 3> shape{};  // the first three sizes
    std::array<i64, 3> strides{};  // likewise, if the tensor is in host memory
    i64 count = 0, address = 0, device = 0;
    bool on_host = false;

    bool readable() const { return contiguous && (kind == kFloat64 || kind == kInt64); }
    bool copyable() const { return on_host && dims <= 3 && (kind == kFloat64 || kind == kFloat32); }
  };

  TensorInfo info(nb::handle tensor) const {
    const TensorInfo found = describe_ ? from_table(tensor) : from_attributes(tensor);
    return found.address || !found.count ? found : TensorInfo{};
  }

  // Whether it is a plain `Tensor` or `Parameter`, not a subclass.
  bool is_own(nb::handle tensor) const { return tensor.type().is(tensor_) || tensor.type().is(parameter_); }

  // Whether it is such a tensor, with its own memory, of floating-point numbers or int64, on the given device and of
  // the given shape. Sizes of kAny match any size and are filled in.
  static constexpr i64 kAny = -1;
  bool is_plain(nb::handle tensor, bool floating, std::initializer_list<i64*> shape, i64 device) const {
    if (!is_own(tensor)) return false;
    const TensorInfo found = info(tensor);
    if (floating ? found.kind != kFloat64 && found.kind != kFloat32 : found.kind != kInt64) return false;
    if (found.device != device || found.dims != int(shape.size())) return false;
    int dim = 0;
    for (i64* expected : shape) {
      const i64 size = found.shape[dim++];
      if (*expected == kAny) *expected = size;
      if (*expected != size) return false;
    }
    return true;
  }

  i64 address(nb::handle tensor) const { return tensor.is_none() ? 0 : known(tensor, "tensor").address; }
  nb::object device(nb::handle tensor) const { return attribute(tensor, device_); }

  // The same values as float64 or int64 in contiguous memory, and their description; the tensor itself if it already
  // has that format. Error messages contain `name`.
  std::pair<nb::object, TensorInfo> to_native(nb::handle tensor, const char* name) const {
    if (tensor.is_none()) return {nb::none(), {}};
    const TensorInfo found = known(tensor, name);
    if (found.readable()) return {nb::borrow(tensor), found};
    if (found.copyable()) return copied(tensor, found);
    const nb::object dtype = attribute(tensor, dtype_);
    const bool in_graph = attribute(tensor, requires_grad_).is(Py_True);
    nb::object read = in_graph ? method(tensor, detach_) : nb::borrow(tensor);
    if (!dtype.is(float64_) && !dtype.is(int64_)) read = to(read, float64_);
    read = method(read, contiguous_);
    return {read, known(read, name)};
  }

  // Copies the values of a copyable tensor, row by row.
  static void copy_values(const TensorInfo& from, double* to) {
    if (from.kind == kFloat32)
      copy_from(reinterpret_cast<const float*>(from.address), from, to);
    else
      copy_from(reinterpret_cast<const double*>(from.address), from, to);
  }

  // The sum of a tensor's values, in the shape of another tensor with a single value.
  nb::object summed(nb::handle tensor, nb::handle other) const {
    const nb::object sum = method(tensor, sum_);
    if (info(other).dims == 0) return sum;
    PyObject* const arguments[] = {sum.ptr(), other.ptr()};
    return checked(PyObject_VectorcallMethod(view_as_.ptr(), arguments, 2, nullptr));
  }

  // The tensor in the precision of another one.
  nb::object in_precision_of(nb::object tensor, nb::handle other) const {
    const nb::object dtype = attribute(other, dtype_);
    return dtype.is(float64_) ? tensor : to(tensor, dtype);
  }

  nb::object bytes(i64 count, nb::handle device) const { return empty(nb::int_(count), uint8_, device); }
  template <class... Sizes>
  nb::object doubles(nb::handle device, Sizes... sizes) const {
    return empty(nb::make_tuple(sizes...), float64_, device);
  }
  template <class... Sizes>
  nb::object integers(nb::handle device, Sizes... sizes) const {  // of 32 bits
    return empty(nb::make_tuple(sizes...), int32_, device);
  }
  template <class... Sizes>
  nb::object floats(Kind kind, nb::handle device, Sizes... sizes) const {
    return empty(nb::make_tuple(sizes...), kind == kFloat64 ? float64_ : float32_, device);
  }
  nb::object like(nb::handle tensor) const {
    PyObject* const arguments[] = {tensor.ptr()};
    return checked(PyObject_Vectorcall(empty_like_.ptr(), arguments, 1, nullptr));
  }

 private:
  // The tensor's description, or an error: an address of 0 would mean that the tensor is missing.
  TensorInfo known(nb::handle tensor, const char* name) const {
    const TensorInfo found = info(tensor);
    if (found.known) return found;
    throw std::invalid_argument(std::string(name) + ": has no memory of its own that the solver could read, like sparse "
                                "tensors and those that a transform makes (torch.func, is_grads_batched)");
  }

  TensorInfo from_table(nb::handle tensor) const {
    TensorInfo found;
    dlpack::Tensor t;
    if (describe_(tensor.ptr(), &t) != 0) {
      PyErr_Clear();
      return found;
    }
    found.known = true, found.kind = kind_of(t.type), found.dims = t.dims;
    found.address = reinterpret_cast<i64>(t.data) + i64(t.offset);
    found.device = i64(t.device.kind) << 32 | t.device.index;
    found.on_host = t.device.kind == dlpack::kHost && t.strides;
    bool dense = true;
    i64 count = 1;
    for (int dim = t.dims - 1; dim >= 0; --dim) {
      const i64 size = t.shape[dim];
      if (dim < int(found.shape.size())) found.shape[dim] = size;
      if (found.on_host && dim < int(found.strides.size())) found.strides[dim] = t.strides[dim];
      dense = dense && (size == 1 || !t.strides || t.strides[dim] == count);
      count *= size;
    }
    found.count = count, found.contiguous = dense || count == 0;
    return found;
  }

  // A tensor in host memory as float64. PyTorch's functions would take longer than all other work on a small tensor.
  std::pair<nb::object, TensorInfo> copied(nb::handle tensor, const TensorInfo& from) const {
    nb::object sizes = nb::steal(PyTuple_New(from.dims));
    for (int dim = 0; dim < from.dims; ++dim) PyTuple_SetItem(sizes.ptr(), dim, PyLong_FromLongLong(from.shape[dim]));
    const nb::object copy = empty(sizes, float64_, device(tensor));
    const TensorInfo to = known(copy, "copy");
    copy_values(from, reinterpret_cast<double*>(to.address));
    return {copy, to};
  }
  template <class T>
  static void copy_from(const T* from, const TensorInfo& info, double* to) {
    std::array<i64, 3> sizes{1, 1, 1}, strides{};  // missing dimensions come first
    std::copy_n(info.shape.begin(), info.dims, sizes.end() - info.dims);
    std::copy_n(info.strides.begin(), info.dims, strides.end() - info.dims);
    for (i64 i = 0; i < sizes[0]; ++i)
      for (i64 j = 0; j < sizes[1]; ++j)
        for (i64 k = 0; k < sizes[2]; ++k) *to++ = double(from[i * strides[0] + j * strides[1] + k * strides[2]]);
  }

  static Kind kind_of(const dlpack::Type& type) {
    if (type.bits == 64 && type.code == dlpack::kInteger) return kInt64;
    if (type.code != dlpack::kFloating) return kOther;
    return type.bits == 64 ? kFloat64 : type.bits == 32 ? kFloat32 : kOther;
  }

  TensorInfo from_attributes(nb::handle tensor) const {
    TensorInfo found;
    try {
      const nb::object dtype = attribute(tensor, dtype_), sizes = attribute(tensor, shape_);
      found.address = integer(method(tensor, data_ptr_));
      found.contiguous = method(tensor, is_contiguous_).is(Py_True);
      found.dims = int(PyTuple_Size(sizes.ptr())), found.count = 1;
      for (int dim = 0; dim < found.dims; ++dim) {
        const i64 size = integer(nb::borrow(PyTuple_GetItem(sizes.ptr(), dim)));
        if (dim < int(found.shape.size())) found.shape[dim] = size;
        found.count *= size;
      }
      found.kind = dtype.is(float64_) ? kFloat64 : dtype.is(float32_) ? kFloat32 : dtype.is(int64_) ? kInt64 : kOther;
      found.device = PyObject_Hash(device(tensor).ptr());  // of its type and index
      found.known = true;
      return found;
    } catch (nb::python_error&) {
      return {};
    }
  }

  static nb::object checked(PyObject* result) {
    if (!result) throw nb::python_error();
    return nb::steal(result);
  }
  static nb::object attribute(nb::handle object, const nb::object& name) {
    return checked(PyObject_GetAttr(object.ptr(), name.ptr()));
  }
  static nb::object method(nb::handle object, const nb::object& name) {
    PyObject* const arguments[] = {object.ptr()};
    return checked(PyObject_VectorcallMethod(name.ptr(), arguments, 1, nullptr));
  }
  nb::object to(nb::handle tensor, nb::handle dtype) const {
    PyObject* const arguments[] = {tensor.ptr(), dtype.ptr()};
    return checked(PyObject_VectorcallMethod(to_.ptr(), arguments, 2, nullptr));
  }
  static i64 integer(const nb::object& value) {
    const i64 found = PyLong_AsLongLong(value.ptr());
    if (found == -1 && PyErr_Occurred()) throw nb::python_error();
    return found;
  }
  nb::object empty(nb::handle size, nb::handle dtype, nb::handle device) const {
    PyObject* const arguments[] = {size.ptr(), dtype.ptr(), device.ptr()};
    return checked(PyObject_Vectorcall(empty_.ptr(), arguments, 1, dtype_and_device_.ptr()));
  }
  static nb::object name(const char* text) { return checked(PyUnicode_InternFromString(text)); }

  nb::object empty_, empty_like_, float64_, float32_, int64_, int32_, uint8_, tensor_, parameter_;
  dlpack::Describe describe_ = nullptr;
  const nb::object data_ptr_ = name("data_ptr"), shape_ = name("shape"), device_ = name("device"),
                   dtype_ = name("dtype"), is_contiguous_ = name("is_contiguous"), contiguous_ = name("contiguous"),
                   detach_ = name("detach"), to_ = name("to"), requires_grad_ = name("requires_grad"),
                   sum_ = name("sum"), view_as_ = name("view_as"),
                   dtype_and_device_ = nb::make_tuple(dtype_, device_);
};

}  // namespace tfgw

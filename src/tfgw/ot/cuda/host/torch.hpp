// What the host asks of PyTorch: where tensors are, what they hold, and new ones. Through Python, as there is no other
// interface that all builds of PyTorch share; with everything looked up once, a question takes a tenth of a microsecond.
#pragma once

#include <nanobind/nanobind.h>

#include <initializer_list>

#include "structs.cuh"

namespace tfgw::gpu {

namespace nb = nanobind;

class Torch {
 public:
  Torch() {
    const nb::module_ torch = nb::module_::import_("torch");
    empty_ = torch.attr("empty"), empty_like_ = torch.attr("empty_like");
    float64_ = torch.attr("float64"), float32_ = torch.attr("float32"), int64_ = torch.attr("int64");
    uint8_ = torch.attr("uint8"), strided_ = torch.attr("strided");
    tensor_ = torch.attr("Tensor"), parameter_ = torch.attr("nn").attr("Parameter");
  }

  enum Kind { kFloating, kInteger };
  static constexpr i64 kAny = -1;

  // Whether it is one of PyTorch's own dense tensors, float64 or float32, or int64, on a device, and of a shape: sizes
  // that may be any are found here.
  bool is_plain(nb::handle tensor, Kind kind, std::initializer_list<i64*> shape, nb::handle device) const {
    const nb::handle type = tensor.type();
    if (!type.is(tensor_) && !type.is(parameter_)) return false;
    const nb::object dtype = attribute(tensor, dtype_);
    if (!(kind == kInteger ? dtype.is(int64_) : dtype.is(float64_) || dtype.is(float32_))) return false;
    if (!attribute(tensor, layout_).is(strided_) || !attribute(tensor, device_).equal(device)) return false;
    const nb::object sizes = attribute(tensor, shape_);
    if (PyTuple_GET_SIZE(sizes.ptr()) != Py_ssize_t(shape.size())) return false;
    Py_ssize_t dim = 0;
    for (i64* expected : shape) {
      const i64 found = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes.ptr(), dim++));
      if (*expected == kAny) *expected = found;
      if (*expected != found) return false;
    }
    return true;
  }

  i64 address(nb::handle tensor) const { return tensor.is_none() ? 0 : integer(method(tensor, data_ptr_)); }
  i64 count(nb::handle tensor) const { return tensor.is_none() ? 0 : integer(method(tensor, numel_)); }
  // Its sizes, the first of them.
  template <class... Sizes>
  void shape(nb::handle tensor, Sizes&... sizes) const {
    const nb::object all = attribute(tensor, shape_);
    Py_ssize_t dim = 0;
    ((sizes = integer(nb::borrow(PyTuple_GetItem(all.ptr(), dim++)))), ...);
  }
  nb::object device(nb::handle tensor) const { return attribute(tensor, device_); }

  // The same values as the kernels read them; the tensor itself where they can.
  nb::object as_read(nb::handle tensor) const {
    if (tensor.is_none()) return nb::borrow(tensor);
    const nb::object dtype = attribute(tensor, dtype_);
    const bool readable = dtype.is(float64_) || dtype.is(int64_);
    if (readable && method(tensor, is_contiguous_).is(Py_True)) return nb::borrow(tensor);
    const bool in_graph = attribute(tensor, requires_grad_).is(Py_True);
    const nb::object detached = in_graph ? method(tensor, detach_) : nb::borrow(tensor);
    return method(readable ? detached : to(detached, float64_), contiguous_);
  }

  // In the precision of another one.
  nb::object in_precision_of(nb::object tensor, nb::handle other) const {
    const nb::object dtype = attribute(other, dtype_);
    return dtype.is(float64_) ? tensor : to(tensor, dtype);
  }

  nb::object bytes(i64 count, nb::handle device) const { return empty(nb::int_(count), uint8_, device); }
  template <class... Sizes>
  nb::object doubles(nb::handle device, Sizes... sizes) const {
    return empty(nb::make_tuple(sizes...), float64_, device);
  }
  nb::object like(nb::handle tensor) const {
    PyObject* const arguments[] = {tensor.ptr()};
    return checked(PyObject_Vectorcall(empty_like_.ptr(), arguments, 1, nullptr));
  }

 private:
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

  nb::object empty_, empty_like_, float64_, float32_, int64_, uint8_, strided_, tensor_, parameter_;
  const nb::object data_ptr_ = name("data_ptr"), numel_ = name("numel"), shape_ = name("shape"),
                   device_ = name("device"), dtype_ = name("dtype"), is_contiguous_ = name("is_contiguous"),
                   contiguous_ = name("contiguous"), layout_ = name("layout"), detach_ = name("detach"),
                   to_ = name("to"), requires_grad_ = name("requires_grad"), dtype_and_device_ = nb::make_tuple(dtype_, device_);
};

}  // namespace tfgw::gpu

// The few functions of the CUDA driver that a solve calls. Python looks their addresses up, so that nothing here needs
// CUDA to be compiled, linked or installed; in the tests they belong to an emulation.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace tfgw::gpu {

namespace nb = nanobind;

using Handle = void*;  // of a kernel, a stream or an event

struct Driver {
  int (*launch_kernel)(Handle kernel, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                       unsigned shared, Handle stream, void** arguments, void** extra);
  int (*event_create)(Handle*, unsigned flags);
  int (*event_record)(Handle event, Handle stream);
  int (*event_synchronize)(Handle);
  int (*stream_is_capturing)(Handle, int* status);
  int (*host_alloc)(void**, size_t bytes, unsigned flags);
  int (*get_error_name)(int, const char**);

  // Call `function`; `what` is for an error. Holding Python's lock is not necessary.
  template <class... Parameters, class... Arguments>
  void call(const char* what, int (*function)(Parameters...), Arguments... arguments) const {
    int error = function(arguments...);
    if (error == kNoContext) {
      make_context();
      error = function(arguments...);
    }
    if (error) fail(what, error);
  }

 private:
  static constexpr int kNoContext = 201;  // in a thread in which CUDA was not used before

  static void make_context() {
    nb::gil_scoped_acquire python;
    nb::module_::import_("torch.cuda").attr("mem_get_info")();
  }

  [[noreturn]] void fail(const char* what, int error) const {
    const char* name = nullptr;
    get_error_name(error, &name);
    throw std::runtime_error(std::string("tfgw: ") + what + " failed: " +
                             (name ? std::string(name) : "error " + std::to_string(error)));
  }
};

}  // namespace tfgw::gpu

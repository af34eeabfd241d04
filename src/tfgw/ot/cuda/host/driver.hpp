// The CUDA driver functions that a solve calls. Python looks up their addresses, so this code can be
// compiled, linked and installed without CUDA; in the tests the functions belong to an emulation.
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

  // Calls `function`; `what` is for error messages. The GIL need not be held.
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
  static constexpr int kNoContext = 201;  // in a thread that has not used CUDA before

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

// Ctrl-C during native work.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

#include "interrupt.hpp"

namespace tfgw {

// Polls Python for pending signals (Ctrl-C) now and then, and only on the calling thread.
class PythonSignals : public Interrupt {
 protected:
  bool requested() override {
    if (std::this_thread::get_id() != caller_) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return false;
    next_ = now + std::chrono::milliseconds(50);
    nanobind::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
  }

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now();
};

}  // namespace tfgw

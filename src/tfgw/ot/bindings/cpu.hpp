#pragma once

#include <nanobind/nanobind.h>

namespace tfgw {

// Adds the solver on the CPU to the extension.
void bind_cpu(nanobind::module_& module);

}  // namespace tfgw

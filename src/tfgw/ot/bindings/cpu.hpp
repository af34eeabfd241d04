#pragma once

#include <nanobind/nanobind.h>

namespace tfgw {

// Adds the CPU solver to the extension.
void bind_cpu(nanobind::module_& module);

}  // namespace tfgw

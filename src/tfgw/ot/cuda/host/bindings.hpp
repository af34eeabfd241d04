#pragma once

#include <nanobind/nanobind.h>

namespace tfgw::gpu {

// Adds the host code of the GPU solver to the extension.
void bind(nanobind::module_& module);

}  // namespace tfgw::gpu

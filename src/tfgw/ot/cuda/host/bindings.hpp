#pragma once

#include <nanobind/nanobind.h>

namespace tfgw::gpu {

// Adds the host's part of solving on a GPU to the extension.
void bind(nanobind::module_& module);

}  // namespace tfgw::gpu

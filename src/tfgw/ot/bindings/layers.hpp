#pragma once

#include <nanobind/nanobind.h>

namespace tfgw {

// Adds the layers of networks (../cpp/layers.hpp) to the extension.
void bind_layers(nanobind::module_& module);

}  // namespace tfgw

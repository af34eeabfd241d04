#pragma once

#include <nanobind/nanobind.h>

namespace tfgw {

// Adds sets of graphs, and the distances between their pairs, to the extension.
void bind_pairs(nanobind::module_& module);

}  // namespace tfgw

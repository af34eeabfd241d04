// Layers of networks in evaluation mode, for tensors on the CPU that are read in place. A function returns None for
// tensors that do not fit: PyTorch then computes the same, or says what is wrong.
#include "layers.hpp"

#include <algorithm>

#include "../cpp/layers.hpp"
#include "torch.hpp"

namespace tfgw {
namespace {

const Torch& torch() {
  static const Torch* const found = new Torch;  // never destroyed, because the interpreter may have been finalised
  return *found;
}

struct DoesNotFit {};

void require(bool condition) {
  if (!condition) throw DoesNotFit{};
}

template <class T>
constexpr Torch::Kind kKind = sizeof(T) == sizeof(double) ? Torch::kFloat64 : Torch::kFloat32;
template <>
constexpr Torch::Kind kKind<int64_t> = Torch::kInt64;

// A contiguous matrix or vector of numbers of type T.
template <class T>
struct Numbers {
  explicit Numbers(nb::handle tensor) {
    require(torch().is_own(tensor));
    const Torch::TensorInfo info = torch().info(tensor);
    require(info.known && info.on_host && info.contiguous && info.kind == kKind<T> && info.dims >= 1 && info.dims <= 2);
    data = reinterpret_cast<const T*>(info.address);
    rows = info.shape[0], columns = info.dims == 2 ? info.shape[1] : -1;
  }

  const T* data;
  i64 rows, columns;  // -1 columns: a vector
};

template <class T>
const T* vector_of(nb::handle tensor, i64 size) {
  const Numbers<T> found(tensor);
  require(found.columns == -1 && found.rows == size);
  return found.data;
}

template <class T>
const T* vector_or_null(nb::handle tensor, i64 size) {
  return tensor.is_none() ? nullptr : vector_of<T>(tensor, size);
}

// The steps as nn/native_layers.py describes them: (weight, bias) of a linear layer, (mean, variance, weight, bias,
// eps) of a norm, and () of a ReLU. `columns` of the input become those of the result.
template <class T>
RowMap<T> row_map(nb::handle steps, i64& columns) {
  RowMap<T> map;
  for (const nb::handle given : steps) {
    const nb::tuple step = nb::cast<nb::tuple>(given);
    if (step.size() == 2) {
      const Numbers<T> weight(step[0]);
      require(weight.columns == columns && weight.rows > 0);
      map.push_back({RowStep<T>::Kind::linear, columns, weight.rows, weight.data,
                     vector_or_null<T>(step[1], weight.rows)});
      columns = weight.rows;
    } else if (step.size() == 5) {
      map.push_back(norm_step(columns, vector_of<T>(step[0], columns), vector_of<T>(step[1], columns),
                              vector_or_null<T>(step[2], columns), vector_or_null<T>(step[3], columns),
                              nb::cast<double>(step[4])));
    } else {
      map.push_back({RowStep<T>::Kind::relu, columns, columns});
    }
  }
  return map;
}

template <class T>
nb::object mapped(nb::handle x, nb::handle steps) {
  const Numbers<T> rows(x);
  require(rows.columns >= 0);
  i64 columns = rows.columns;
  const RowMap<T> map = row_map<T>(steps, columns);
  const nb::object out = torch().floats(kKind<T>, torch().device(x), rows.rows, columns);
  T* const values = reinterpret_cast<T*>(torch().address(out));
  {
    nb::gil_scoped_release release;
    map_rows(map, rows.rows, rows.columns, rows.data, values, columns);
  }
  return out;
}

template <class T>
nb::object encoded(nb::handle x, nb::handle edge_index, nb::handle layers) {
  const Numbers<T> nodes(x);
  const Numbers<int64_t> edges(edge_index);
  require(nodes.columns >= 0 && edges.rows == 2 && edges.columns >= 0);
  const int64_t* const last = edges.data + 2 * edges.columns;
  require(std::all_of(edges.data, last, [&](int64_t node) { return node >= 0 && node < nodes.rows; }));
  GinInput<T> in{nodes.rows, nodes.columns, edges.columns, nodes.data, edges.data, {}};
  i64 width = nodes.columns, columns = nodes.columns;
  for (const nb::handle layer : layers) {  // (own, steps)
    in.layers.push_back({nb::cast<T>(layer[0]), row_map<T>(layer[1], width)});
    columns += width;
  }
  const nb::object out = torch().floats(kKind<T>, torch().device(x), nodes.rows, columns);
  T* const values = reinterpret_cast<T*>(torch().address(out));
  {
    nb::gil_scoped_release release;
    encode_nodes(in, columns, values);
  }
  return out;
}

// Calls the function for the precision of x.
template <class InDouble, class InSingle>
nb::object in_precision_of(nb::handle x, InDouble in_double, InSingle in_single) {
  try {
    return torch().info(x).kind == Torch::kFloat64 ? in_double() : in_single();
  } catch (const DoesNotFit&) {
    return nb::none();
  }
}

}  // namespace

void bind_layers(nb::module_& module) {
  module.def(
      "map_rows",
      [](nb::handle x, nb::list steps) {
        return in_precision_of(x, [&] { return mapped<double>(x, steps); }, [&] { return mapped<float>(x, steps); });
      },
      nb::arg("x"), nb::arg("steps"));
  module.def(
      "encode_nodes",
      [](nb::handle x, nb::handle edge_index, nb::list layers) {
        return in_precision_of(
            x, [&] { return encoded<double>(x, edge_index, layers); },
            [&] { return encoded<float>(x, edge_index, layers); });
      },
      nb::arg("x"), nb::arg("edge_index"), nb::arg("layers"));
}

}  // namespace tfgw

// Layers of networks in evaluation mode: maps of rows (linear layers, batch normalisation, ReLU) and GIN encoders. What
// a row is mapped to depends on nothing but the row, bit for bit.
#pragma once

#include <cstdint>
#include <vector>

namespace tfgw {

// A step of a map of rows. T is float or double.
template <class T>
struct RowStep {
  enum class Kind { linear, scale, relu };

  Kind kind;
  int64_t in, out;                   // columns before and after
  const T* weight = nullptr;         // linear: (out, in)
  const T* bias = nullptr;           // linear: (out), or null
  std::vector<T> factor{}, shift{};  // scale: x · factor + shift
};

// Batch normalisation with these statistics. `weight` and `bias` may be null.
template <class T>
RowStep<T> norm_step(int64_t columns, const T* mean, const T* variance, const T* weight, const T* bias, double eps);

template <class T>
using RowMap = std::vector<RowStep<T>>;

// Writes the images of the rows of x, (rows, in), to rows of `out` that are `stride` numbers apart.
template <class T>
void map_rows(const RowMap<T>& map, int64_t rows, int64_t in, const T* x, T* out, int64_t stride);

// A layer that maps own · x_i + sum over edges (j, i) of x_j, in their order.
template <class T>
struct GinLayer {
  T own;
  RowMap<T> map;
};

// A GIN encoder with Jumping Knowledge.
template <class T>
struct GinInput {
  int64_t nodes, features, edges;
  const T* x;                 // (nodes, features)
  const int64_t* edge_index;  // (2, edges), of valid nodes
  std::vector<GinLayer<T>> layers;
};

// Writes the features and the result of each layer side by side, (nodes, columns).
template <class T>
void encode_nodes(const GinInput<T>& in, int64_t columns, T* out);

}  // namespace tfgw

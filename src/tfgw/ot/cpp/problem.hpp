// The problem as data: a ragged batch of graphs (C, F, h) and K templates (C̄, F̄, h̄), prepared once per call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels.hpp"

namespace tfgw {

// Rows of a sparse matrix; the columns of a row are sorted and distinct.
struct Csr {
  std::vector<int64_t> ptr;
  std::vector<int32_t> col;
  std::vector<double> value;
};

enum class StructureKind { none, sparse, dense };

// Borrowed, already validated input. Graph b owns nodes [ptr[b], ptr[b + 1]).
struct BatchInput {
  int64_t graphs, nodes, features;
  const int64_t* ptr;           // (graphs + 1)
  const double* x;              // (nodes, features)
  const double* weights;        // (nodes)
  StructureKind kind;
  int64_t edges;                // sparse
  const int64_t* edge_index;    // (2, edges): C[edge_index[0, e], edge_index[1, e]] += edge_weight[e]
  const double* edge_weight;    // (edges), or null for ones
  const double* dense;          // dense: the n × n blocks, row by row, one after the other
  const double* cost;           // (nodes, templates, template nodes), or null for squared feature distances
};

struct TemplatesInput {
  int64_t count, nodes, features;
  const double* structure;      // (count, nodes, nodes), or null
  const double* x;              // (count, nodes, features)
  const double* weights;        // (count, nodes)
  const double* alpha;          // (count)
};

struct Graph {
  int n = 0;
  int64_t first_node = 0;
  const double* x = nullptr;
  std::vector<double> x_norm;       // |f_i|²
  std::vector<double> h;            // sums to 1
  std::vector<int64_t> supply;      // h in fixed point
  bool symmetric = true;
  StructureKind kind = StructureKind::none;
  Csr C, Ct;                        // sparse; Ct only where not symmetric
  const double* dense = nullptr;    // (n, n)
  std::vector<double> square;       // sum_j (C_ij² + C_ji²) h_j
  std::vector<double> out_mean, in_mean;  // C h and Cᵀ h
  double constant = 0;              // hᵀ C² h

  // Calls visit(i, j, C_ij) for every stored entry, row by row.
  template <class Visit>
  void for_each_entry(Visit visit) const {
    if (kind == StructureKind::sparse) {
      for (int i = 0; i < n; ++i)
        for (int64_t e = C.ptr[i]; e < C.ptr[i + 1]; ++e) visit(i, C.col[e], C.value[e]);
    } else if (kind == StructureKind::dense) {
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) visit(i, j, dense[int64_t(i) * n + j]);
    }
  }

  // C_ij
  double at(int i, int j) const;

  // Calls visit(i, C_ij) for every stored entry of column j.
  template <class Visit>
  void for_each_in_column(int j, Visit visit) const {
    if (kind == StructureKind::sparse) {
      const Csr& columns = symmetric ? C : Ct;
      for (int64_t e = columns.ptr[j]; e < columns.ptr[j + 1]; ++e) visit(columns.col[e], columns.value[e]);
    } else if (kind == StructureKind::dense) {
      for (int i = 0; i < n; ++i) visit(i, dense[int64_t(i) * n + j]);
    }
  }
};

// A template without its weightless nodes, the others in canonical order. Matrices over its nodes have stride ld
// (kernels.hpp).
struct Template {
  int m = 0, ld = 0;
  double alpha = 0;
  std::vector<int32_t> live;        // original index of each kept node
  std::vector<double> h;
  std::vector<int64_t> demand;
  Matrix C, Ct, mean;               // C̄, C̄ᵀ and their mean
  Matrix ft;                        // F̄ᵀ: (features, ld)
  std::vector<double> f_norm;       // |f̄_k|²
  std::vector<double> square;       // sum_l (C̄_kl² + C̄_lk²) h̄_l, for every original node
  std::vector<double> out_mean, in_mean;  // C̄ h̄ and C̄ᵀ h̄, of the kept nodes
  double constant = 0;
};

// Prepares template k alone.
Template prepare_template(const TemplatesInput& in, int64_t k);

// The prepared data of a batch, computed on several threads.
void prepare(const BatchInput& in, const TemplatesInput& templates_in, int threads, std::vector<Graph>& graphs,
             std::vector<Template>& templates);

}  // namespace tfgw

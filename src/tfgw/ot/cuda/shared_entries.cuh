// Maps the parameters of a layer to a problem: entries shared by several places of C̄, and one α for all templates. At
// most one launch, because each launch by PyTorch would take the host longer than this.
#pragma once

#include "warp.cuh"

namespace tfgw {

// Expands the entries to the structure of template k. One block.
TFGW_DEVICE void expand_entries(const SharedEntries& s, i64 k) {
  double* structure = s.structure + k * s.places;
  for (i64 p = thread_in_block(); p < s.places; p += threads_in_block()) structure[p] = 0;
  sync_block();
  for (i64 e = thread_in_block(); e < s.entries; e += threads_in_block())
    structure[s.where[2 * e]] = structure[s.where[2 * e + 1]] = s.entry[k * s.entries + e];
  if (thread_in_block() == 0) s.alphas[k] = s.alpha[k * s.alpha_step];
}

// Sums the gradients of the structure of template k, and of α, by entry. One block.
TFGW_DEVICE void fold_entries(const SharedEntries& s, i64 k) {
  const double* structure = s.structure + k * s.places;
  for (i64 e = thread_in_block(); e < s.entries && s.entry; e += threads_in_block()) {
    const i64 first = s.where[2 * e], second = s.where[2 * e + 1];
    s.entry[k * s.entries + e] = first == second ? structure[first] : structure[first] + structure[second];
  }
  if (thread_in_block() != 0 || !s.alpha) return;
  if (s.alpha_step) {
    s.alpha[k] = s.alphas[k];
  } else if (k == 0) {
    double sum = 0;
    for (i64 t = 0; t < s.templates; ++t) sum += s.alphas[t];
    s.alpha[0] = sum;
  }
}

}  // namespace tfgw

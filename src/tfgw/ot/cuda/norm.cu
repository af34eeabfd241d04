// The kernels of batch normalisation: one block for every few channels.
#include "norm.cuh"

using namespace tfgw;

TFGW_KERNEL(kNormThreads) tfgw_norm_float64(const TFGW_GRID_CONSTANT Norm<double> norm) {
  TFGW_SHARED NormMemory memory;
  NormOfChannel<double>(norm, memory, i64(*norm.nodes)).forward();
}

TFGW_KERNEL(kNormThreads) tfgw_norm_float32(const TFGW_GRID_CONSTANT Norm<float> norm) {
  TFGW_SHARED NormMemory memory;
  NormOfChannel<float>(norm, memory, i64(*norm.nodes)).forward();
}

TFGW_KERNEL(kNormThreads) tfgw_norm_backward_float64(const TFGW_GRID_CONSTANT Norm<double> norm) {
  TFGW_SHARED NormMemory memory;
  NormOfChannel<double>(norm, memory, i64(*norm.nodes)).backward();
}

TFGW_KERNEL(kNormThreads) tfgw_norm_backward_float32(const TFGW_GRID_CONSTANT Norm<float> norm) {
  TFGW_SHARED NormMemory memory;
  NormOfChannel<float>(norm, memory, i64(*norm.nodes)).backward();
}

TFGW_KERNEL(kNormThreads) tfgw_column_sums_float64(const TFGW_GRID_CONSTANT Norm<double> norm) {
  TFGW_SHARED NormMemory memory;
  NormOfChannel<double>(norm, memory, norm.rows).column_sums();
}

TFGW_KERNEL(kNormThreads) tfgw_column_sums_float32(const TFGW_GRID_CONSTANT Norm<float> norm) {
  TFGW_SHARED NormMemory memory;
  NormOfChannel<float>(norm, memory, norm.rows).column_sums();
}

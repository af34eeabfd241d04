// The kernels of recorded training steps: those of layers for padded batches, the kernel that gathers these batches, and
// those of the optimiser and of the projection of templates.
#include "adam.cuh"
#include "linear.cuh"
#include "neighbour_sums.cuh"
#include "norm.cuh"
#include "padded_batch.cuh"
#include "projection.cuh"

using namespace tfgw;

TFGW_KERNEL(kNormThreads) tfgw_norm_float64(const TFGW_GRID_CONSTANT Norm<double> norm) {
  TFGW_SHARED NormMemory memory;
  NormOfChannel<double>(norm, memory).forward();
}

TFGW_KERNEL(kNormThreads) tfgw_norm_float32(const TFGW_GRID_CONSTANT Norm<float> norm) {
  TFGW_SHARED NormMemory memory;
  NormOfChannel<float>(norm, memory).forward();
}

TFGW_KERNEL(kNormThreads) tfgw_norm_backward_float64(const TFGW_GRID_CONSTANT Norm<double> norm) {
  TFGW_SHARED NormMemory memory;
  NormOfChannel<double>(norm, memory).backward();
}

TFGW_KERNEL(kNormThreads) tfgw_norm_backward_float32(const TFGW_GRID_CONSTANT Norm<float> norm) {
  TFGW_SHARED NormMemory memory;
  NormOfChannel<float>(norm, memory).backward();
}

TFGW_KERNEL(kLinearThreads) tfgw_linear_gradient_float64(const TFGW_GRID_CONSTANT Linear<double> layer) {
  TFGW_SHARED LinearMemory memory;
  LinearGradient<double>(layer, memory).run();
}

TFGW_KERNEL(kLinearThreads) tfgw_linear_gradient_float32(const TFGW_GRID_CONSTANT Linear<float> layer) {
  TFGW_SHARED LinearMemory memory;
  LinearGradient<float>(layer, memory).run();
}

TFGW_KERNEL(kNeighbourThreads) tfgw_neighbour_sums_float64(const TFGW_GRID_CONSTANT Neighbours<double> neighbours) {
  NeighbourSums<double>(neighbours).run();
}

TFGW_KERNEL(kNeighbourThreads) tfgw_neighbour_sums_float32(const TFGW_GRID_CONSTANT Neighbours<float> neighbours) {
  NeighbourSums<float>(neighbours).run();
}

TFGW_KERNEL(kPaddedThreads) tfgw_padded_batch_float64(const TFGW_GRID_CONSTANT Padded<double> padded) {
  TFGW_SHARED PaddedMemory memory;
  PaddedBatch<double>(padded, memory).run();
}

TFGW_KERNEL(kPaddedThreads) tfgw_padded_batch_float32(const TFGW_GRID_CONSTANT Padded<float> padded) {
  TFGW_SHARED PaddedMemory memory;
  PaddedBatch<float>(padded, memory).run();
}

TFGW_KERNEL(kAdamThreads) tfgw_adam_steps_float64(const TFGW_GRID_CONSTANT AdamSteps<double> steps) { count_steps(steps); }

TFGW_KERNEL(kAdamThreads) tfgw_adam_steps_float32(const TFGW_GRID_CONSTANT AdamSteps<float> steps) { count_steps(steps); }

TFGW_KERNEL(kAdamThreads) tfgw_adam_update_float64(const TFGW_GRID_CONSTANT AdamUpdate<double> update) {
  update_entries(update);
}

TFGW_KERNEL(kAdamThreads) tfgw_adam_update_float32(const TFGW_GRID_CONSTANT AdamUpdate<float> update) {
  update_entries(update);
}

TFGW_KERNEL(kProjectionThreads) tfgw_projection_float64(const TFGW_GRID_CONSTANT Projection<double> projection) {
  project(projection);
}

TFGW_KERNEL(kProjectionThreads) tfgw_projection_float32(const TFGW_GRID_CONSTANT Projection<float> projection) {
  project(projection);
}

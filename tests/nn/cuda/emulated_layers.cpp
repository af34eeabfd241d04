// The kernels of layers as functions: launch_NAME(blocks, struct).
#include "layers.cu"

#define TFGW_LAUNCH(NAME, STRUCT)                                                                        \
  extern "C" void launch_##NAME(int blocks, int threads, const STRUCT* argument) {                      \
    for (int b = 0; b < blocks; ++b) Block::current().run(b, blocks, threads, [&] { NAME(*argument); }); \
  }

TFGW_LAUNCH(tfgw_norm_float64, Norm<double>)
TFGW_LAUNCH(tfgw_norm_float32, Norm<float>)
TFGW_LAUNCH(tfgw_norm_backward_float64, Norm<double>)
TFGW_LAUNCH(tfgw_norm_backward_float32, Norm<float>)
TFGW_LAUNCH(tfgw_linear_gradient_float64, Linear<double>)
TFGW_LAUNCH(tfgw_linear_gradient_float32, Linear<float>)
TFGW_LAUNCH(tfgw_neighbour_sums_float64, Neighbours<double>)
TFGW_LAUNCH(tfgw_neighbour_sums_float32, Neighbours<float>)
TFGW_LAUNCH(tfgw_padded_batch_float64, Padded<double>)
TFGW_LAUNCH(tfgw_padded_batch_float32, Padded<float>)
TFGW_LAUNCH(tfgw_adam_steps_float64, AdamSteps<double>)
TFGW_LAUNCH(tfgw_adam_steps_float32, AdamSteps<float>)
TFGW_LAUNCH(tfgw_adam_update_float64, AdamUpdate<double>)
TFGW_LAUNCH(tfgw_adam_update_float32, AdamUpdate<float>)
TFGW_LAUNCH(tfgw_projection_float64, Projection<double>)
TFGW_LAUNCH(tfgw_projection_float32, Projection<float>)

extern "C" int norm_threads() { return kNormThreads; }
extern "C" int norm_channels() { return kNormChannels; }
extern "C" int norm_bytes() { return sizeof(Norm<double>); }
extern "C" int linear_threads() { return kLinearThreads; }
extern "C" int linear_tile() { return kLinearTile; }
extern "C" int linear_bytes() { return sizeof(Linear<double>); }
extern "C" int neighbour_threads() { return kNeighbourThreads; }
extern "C" int neighbour_bytes() { return sizeof(Neighbours<double>); }
extern "C" int padded_threads() { return kPaddedThreads; }
extern "C" int padded_graphs() { return kMostGraphs; }
extern "C" int padded_bytes() { return sizeof(Padded<double>); }
extern "C" int adam_threads() { return kAdamThreads; }
extern "C" int adam_entries() { return kAdamEntries; }
extern "C" int adam_factors() { return sizeof(AdamFactors) / sizeof(double); }
extern "C" int adam_steps_bytes() { return sizeof(AdamSteps<double>); }
extern "C" int adam_update_bytes() { return sizeof(AdamUpdate<double>); }
extern "C" int projection_threads() { return kProjectionThreads; }
extern "C" int projection_rows() { return kProjectionRows; }
extern "C" int projection_entries() { return kProjectionEntries; }
extern "C" int projection_bytes() { return sizeof(Projection<double>); }

// The kernels of batch normalisation as functions: launch_NAME(blocks, struct).
#include "norm.cu"

#define TFGW_LAUNCH(NAME, TYPE)                                                                    \
  extern "C" void launch_##NAME(int blocks, const Norm<TYPE>* norm) {                              \
    for (int b = 0; b < blocks; ++b) Block::current().run(b, blocks, kNormThreads, [&] { NAME(*norm); }); \
  }

TFGW_LAUNCH(tfgw_norm_float64, double)
TFGW_LAUNCH(tfgw_norm_float32, float)
TFGW_LAUNCH(tfgw_norm_backward_float64, double)
TFGW_LAUNCH(tfgw_norm_backward_float32, float)
TFGW_LAUNCH(tfgw_column_sums_float64, double)
TFGW_LAUNCH(tfgw_column_sums_float32, float)

extern "C" int norm_threads() { return kNormThreads; }
extern "C" int norm_channels() { return kNormChannels; }
extern "C" int norm_bytes() { return sizeof(Norm<double>); }

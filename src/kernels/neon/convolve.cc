// The short convolution in front of, or in place of, a layer's memory.
#include "kernels/neon/lanes.h"
#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void convolve(const float* x, size_t row_stride, const float* taps, size_t tap_stride, size_t width,
              size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    float32x4_t sum = vdupq_n_f32(0.0f);
    for (size_t k = 0; k < width; ++k)
      sum = vfmaq_f32(sum, load_some(taps + k * tap_stride + i, n - i),
                      load_some(x + k * row_stride + i, n - i));
    store_some(out + i, sum, n - i);
  }
}

}  // namespace sluice::kernels::neon

// The short convolution in front of, or in place of, a layer's memory.
#include <cmath>

#include "kernels/ref/ref.h"

namespace sluice::kernels::ref {

void convolve(const float* x, size_t row_stride, const float* taps, size_t tap_stride, size_t width,
              size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) {
    float sum = 0.0f;
    for (size_t k = 0; k < width; ++k)
      sum = std::fma(taps[k * tap_stride + i], x[k * row_stride + i], sum);
    out[i] = sum;
  }
}

}  // namespace sluice::kernels::ref

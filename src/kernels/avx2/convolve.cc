// The short convolution in front of, or in place of, a layer's memory.
#include "kernels/avx2/avx2.h"
#include "kernels/avx2/lanes.h"

namespace sluice::kernels::avx2 {

void convolve(const float* x, size_t row_stride, const float* taps, size_t tap_stride, size_t width,
              size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    __m256 sum = _mm256_setzero_ps();
    for (size_t k = 0; k < width; ++k)
      sum = _mm256_fmadd_ps(load_some(taps + k * tap_stride + i, n - i),
                            load_some(x + k * row_stride + i, n - i), sum);
    store_some(out + i, sum, n - i);
  }
}

}  // namespace sluice::kernels::avx2

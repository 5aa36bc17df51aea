// The short convolution in front of, or in place of, a layer's memory.
#include "kernels/avx512/avx512.h"
#include "kernels/avx512/lanes.h"

namespace sluice::kernels::avx512 {

void convolve(const float* x, size_t row_stride, const float* taps, size_t tap_stride, size_t width,
              size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    __m512 sum = _mm512_setzero_ps();
    for (size_t k = 0; k < width; ++k)
      sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(lanes, taps + k * tap_stride + i),
                            _mm512_maskz_loadu_ps(lanes, x + k * row_stride + i), sum);
    _mm512_mask_storeu_ps(out + i, lanes, sum);
  }
}

}  // namespace sluice::kernels::avx512

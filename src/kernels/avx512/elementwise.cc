// What happens to a hidden state between the matrices.
#include <limits>

#include "kernels/avx512/avx512.h"
#include "kernels/avx512/lanes.h"

namespace sluice::kernels::avx512 {

void rms_norm(const float* x, const float* weight, float eps, size_t n, float* out) {
  __m512 squares = _mm512_setzero_ps();
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);
    squares = _mm512_mask3_fmadd_ps(v, v, squares, lanes);
  }
  const float mean = fold_lanes(squares) / static_cast<float>(n);
  const float root = _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + eps)));
  const __m512 scale = _mm512_set1_ps(1.0f / root);
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + i), scale);
    _mm512_mask_storeu_ps(out + i, lanes,
                          _mm512_mul_ps(scaled, _mm512_maskz_loadu_ps(lanes, weight + i)));
  }
}

void add(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 sum =
        _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, y + i), _mm512_maskz_loadu_ps(lanes, x + i));
    _mm512_mask_storeu_ps(y + i, lanes, sum);
  }
}

void add_scaled(float a, const float* x, size_t n, float* y) {
  const __m512 factor = _mm512_set1_ps(a);
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 sum = _mm512_fmadd_ps(factor, _mm512_maskz_loadu_ps(lanes, x + i),
                                       _mm512_maskz_loadu_ps(lanes, y + i));
    _mm512_mask_storeu_ps(y + i, lanes, sum);
  }
}

void silu_multiply(const float* gate, const float* up, size_t n, float* out) {
  const __m512 sign = _mm512_set1_ps(-0.0f);
  const __m512 one = _mm512_set1_ps(1.0f);
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 x = _mm512_maskz_loadu_ps(lanes, gate + i);
    const __m512 silu = _mm512_div_ps(x, _mm512_add_ps(one, exp_lanes(_mm512_xor_ps(x, sign))));
    _mm512_mask_storeu_ps(out + i, lanes,
                          _mm512_mul_ps(silu, _mm512_maskz_loadu_ps(lanes, up + i)));
  }
}

void softmax(float* x, size_t n) {
  __m512 maxima = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  for (size_t i = 0; i < n; i += kLanes) {  // x > m ? x : m, so NaN never becomes the maximum
    const __mmask16 lanes = lanes_left(i, n);
    maxima = _mm512_mask_max_ps(maxima, lanes, _mm512_maskz_loadu_ps(lanes, x + i), maxima);
  }
  const __m512 max = _mm512_set1_ps(max_lane(maxima));
  __m512 sums = _mm512_setzero_ps();
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 e = exp_lanes(_mm512_sub_ps(_mm512_maskz_loadu_ps(lanes, x + i), max));
    sums = _mm512_mask_add_ps(sums, lanes, sums, e);
    _mm512_mask_storeu_ps(x + i, lanes, e);
  }
  const __m512 total = _mm512_set1_ps(fold_lanes(sums));
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    _mm512_mask_storeu_ps(x + i, lanes, _mm512_div_ps(_mm512_maskz_loadu_ps(lanes, x + i), total));
  }
}

void rope_neox(float* x, const float* cos, const float* sin, size_t pairs) {
  for (size_t i = 0; i < pairs; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, pairs);
    const __m512 a = _mm512_maskz_loadu_ps(lanes, x + i);
    const __m512 b = _mm512_maskz_loadu_ps(lanes, x + pairs + i);
    const __m512 c = _mm512_maskz_loadu_ps(lanes, cos + i);
    const __m512 s = _mm512_maskz_loadu_ps(lanes, sin + i);
    _mm512_mask_storeu_ps(x + i, lanes, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
    _mm512_mask_storeu_ps(x + pairs + i, lanes, _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c)));
  }
}

}  // namespace sluice::kernels::avx512

// What happens to a hidden state between the matrices.
#include <limits>

#include "kernels/avx512/avx512.h"
#include "kernels/avx512/lanes.h"

namespace sluice::kernels::avx512 {
namespace {

float sum_of_squares(const float* x, size_t n) {
  __m512 squares = _mm512_setzero_ps();
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);
    squares = _mm512_mask3_fmadd_ps(v, v, squares, lanes);
  }
  return fold_lanes(squares);
}

}  // namespace

void rms_norm(const float* x, const float* weight, float eps, size_t n, float* out) {
  const float mean = sum_of_squares(x, n) / static_cast<float>(n);
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
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 silu = silu_lanes(_mm512_maskz_loadu_ps(lanes, gate + i));
    _mm512_mask_storeu_ps(out + i, lanes,
                          _mm512_mul_ps(silu, _mm512_maskz_loadu_ps(lanes, up + i)));
  }
}

void swiglu_limited(const float* gate, const float* up, float limit, size_t n, float* out) {
  const __m512 high = _mm512_set1_ps(limit);
  const __m512 low = _mm512_set1_ps(-limit);
  for (size_t i = 0; i < n; i += kLanes) {  // of equals and NaN, min and max give the second
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 silu = silu_lanes(_mm512_maskz_loadu_ps(lanes, gate + i));
    const __m512 below = _mm512_min_ps(high, _mm512_maskz_loadu_ps(lanes, up + i));
    const __m512 product = _mm512_mul_ps(_mm512_min_ps(high, silu), _mm512_max_ps(low, below));
    _mm512_mask_storeu_ps(out + i, lanes, product);
  }
}

void sigmoid_multiply(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 sigmoid = sigmoid_lanes(_mm512_maskz_loadu_ps(lanes, gate + i));
    _mm512_mask_storeu_ps(out + i, lanes,
                          _mm512_mul_ps(sigmoid, _mm512_maskz_loadu_ps(lanes, up + i)));
  }
}

void set_length(float* x, float length, float eps, size_t n) {
  const float found = _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(sum_of_squares(x, n))));
  const __m512 scale = _mm512_set1_ps(length / (found > eps ? found : eps));
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    _mm512_mask_storeu_ps(x + i, lanes, _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + i), scale));
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

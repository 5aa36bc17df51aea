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

void gelu_multiply(const float* gate, const float* up, size_t n, float* out) {
  using C = GeluConstants;
  const __m512 sign = _mm512_set1_ps(-0.0f);
  const __m512 one = _mm512_set1_ps(1.0f);
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 x = _mm512_maskz_loadu_ps(lanes, gate + i);
    const __m512 slope =
        _mm512_fmadd_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(C::kCubic), _mm512_set1_ps(C::kLinear));
    const __m512 w = _mm512_mul_ps(x, slope);
    const __m512 gelu = _mm512_div_ps(x, _mm512_add_ps(one, exp_lanes(_mm512_xor_ps(w, sign))));
    _mm512_mask_storeu_ps(out + i, lanes,
                          _mm512_mul_ps(gelu, _mm512_maskz_loadu_ps(lanes, up + i)));
  }
}

void relu_multiply(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 relu = _mm512_max_ps(_mm512_maskz_loadu_ps(lanes, gate + i), _mm512_setzero_ps());
    _mm512_mask_storeu_ps(out + i, lanes,
                          _mm512_mul_ps(relu, _mm512_maskz_loadu_ps(lanes, up + i)));
  }
}

void swiglu_clamped(const float* gate, const float* up, size_t n, float* out) {
  const __m512 sign = _mm512_set1_ps(-0.0f);
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 limit = _mm512_set1_ps(kSwigluLimit);
  const __m512 alpha = _mm512_set1_ps(kSwigluAlpha);
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 g = _mm512_min_ps(_mm512_maskz_loadu_ps(lanes, gate + i), limit);
    const __m512 below = _mm512_min_ps(_mm512_maskz_loadu_ps(lanes, up + i), limit);
    const __m512 u = _mm512_max_ps(below, _mm512_set1_ps(-kSwigluLimit));
    const __m512 e = exp_lanes(_mm512_xor_ps(_mm512_mul_ps(alpha, g), sign));
    const __m512 swish = _mm512_div_ps(g, _mm512_add_ps(one, e));
    _mm512_mask_storeu_ps(out + i, lanes, _mm512_mul_ps(swish, _mm512_add_ps(u, one)));
  }
}

void soft_cap(float cap, size_t n, float* x) {
  const __m512 limit = _mm512_set1_ps(cap);
  for (size_t i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 share = _mm512_div_ps(_mm512_maskz_loadu_ps(lanes, x + i), limit);
    _mm512_mask_storeu_ps(x + i, lanes, _mm512_mul_ps(limit, tanh_lanes(share)));
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

void rope_adjacent(float* x, const float* cos, const float* sin, size_t pairs) {
  // Lane 2j: cosine j, lane 2j + 1: sine j, of the first and of the last eight pairs.
  const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i last = _mm512_add_epi32(first, _mm512_set1_epi32(8));
  const auto turn = [](float* at, __mmask16 lanes, __m512 turns) {
    const __m512 v = _mm512_maskz_loadu_ps(lanes, at);
    const __m512 swapped = _mm512_permute_ps(turns, 0xb1);
    const __m512 product = _mm512_mul_ps(_mm512_movehdup_ps(v), swapped);
    _mm512_mask_storeu_ps(at, lanes, _mm512_fmaddsub_ps(_mm512_moveldup_ps(v), turns, product));
  };
  for (size_t i = 0; i < pairs; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, pairs);
    const __m512 c = _mm512_maskz_loadu_ps(lanes, cos + i);
    const __m512 s = _mm512_maskz_loadu_ps(lanes, sin + i);
    const size_t at = 2 * i;
    turn(x + at, lanes_left(at, 2 * pairs), _mm512_permutex2var_ps(c, first, s));
    if (at + kLanes >= 2 * pairs) return;
    turn(x + at + kLanes, lanes_left(at + kLanes, 2 * pairs), _mm512_permutex2var_ps(c, last, s));
  }
}

}  // namespace sluice::kernels::avx512

// What happens to a hidden state between the matrices. Loops go by eight floats, or by the 16 lanes
// of sum16; of the last ones, load_some and store_some touch only those that exist. Those that do
// not exist enter a sum as +0, which changes nothing, because no sum here can be −0.
#include "kernels/avx2/avx2.h"
#include "kernels/avx2/lanes.h"

namespace sluice::kernels::avx2 {
namespace {

/// How many of the elements before n are at i or behind it.
inline size_t left(size_t i, size_t n) {
  return i < n ? n - i : 0;
}

inline float square_root(float x) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}

float sum_of_squares(const float* x, size_t n) {
  __m256 squares[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (size_t i = 0; i < n; i += 2 * kLanes) {
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      const size_t at = i + half * kLanes;
      const __m256 v = load_some(x + at, left(at, n));
      squares[half] = _mm256_fmadd_ps(v, v, squares[half]);
    }
  }
  return fold_lanes(squares[0], squares[1]);
}

}  // namespace

void rms_norm(const float* x, const float* weight, float eps, size_t n, float* out) {
  const float mean = sum_of_squares(x, n) / static_cast<float>(n);
  const __m256 scale = _mm256_set1_ps(1.0f / square_root(mean + eps));
  for (size_t i = 0; i < n; i += kLanes) {
    const __m256 scaled = _mm256_mul_ps(load_some(x + i, n - i), scale);
    store_some(out + i, _mm256_mul_ps(scaled, load_some(weight + i, n - i)), n - i);
  }
}

void add(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i += kLanes)
    store_some(y + i, _mm256_add_ps(load_some(y + i, n - i), load_some(x + i, n - i)), n - i);
}

void add_scaled(float a, const float* x, size_t n, float* y) {
  const __m256 factor = _mm256_set1_ps(a);
  for (size_t i = 0; i < n; i += kLanes) {
    const __m256 sum = _mm256_fmadd_ps(factor, load_some(x + i, n - i), load_some(y + i, n - i));
    store_some(y + i, sum, n - i);
  }
}

void silu_multiply(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    const __m256 silu = silu_lanes(load_some(gate + i, n - i));
    store_some(out + i, _mm256_mul_ps(silu, load_some(up + i, n - i)), n - i);
  }
}

void swiglu_limited(const float* gate, const float* up, float limit, size_t n, float* out) {
  const __m256 high = _mm256_set1_ps(limit);
  const __m256 low = _mm256_set1_ps(-limit);
  for (size_t i = 0; i < n; i += kLanes) {  // of equals and NaN, min and max give the second
    const __m256 silu = silu_lanes(load_some(gate + i, n - i));
    const __m256 below = _mm256_min_ps(high, load_some(up + i, n - i));
    store_some(out + i, _mm256_mul_ps(_mm256_min_ps(high, silu), _mm256_max_ps(low, below)), n - i);
  }
}

void sigmoid_multiply(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    const __m256 sigmoid = sigmoid_lanes(load_some(gate + i, n - i));
    store_some(out + i, _mm256_mul_ps(sigmoid, load_some(up + i, n - i)), n - i);
  }
}

void set_length(float* x, float length, float eps, size_t n) {
  const float found = square_root(sum_of_squares(x, n));
  const __m256 scale = _mm256_set1_ps(length / (found > eps ? found : eps));
  for (size_t i = 0; i < n; i += kLanes)
    store_some(x + i, _mm256_mul_ps(load_some(x + i, n - i), scale), n - i);
}

void gelu_multiply(const float* gate, const float* up, size_t n, float* out) {
  using C = GeluConstants;
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 one = _mm256_set1_ps(1.0f);
  for (size_t i = 0; i < n; i += kLanes) {
    const __m256 x = load_some(gate + i, n - i);
    const __m256 slope =
        _mm256_fmadd_ps(_mm256_mul_ps(x, x), _mm256_set1_ps(C::kCubic), _mm256_set1_ps(C::kLinear));
    const __m256 w = _mm256_mul_ps(x, slope);
    const __m256 gelu = _mm256_div_ps(x, _mm256_add_ps(one, exp_lanes(_mm256_xor_ps(w, sign))));
    store_some(out + i, _mm256_mul_ps(gelu, load_some(up + i, n - i)), n - i);
  }
}

void relu_multiply(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    const __m256 relu = _mm256_max_ps(load_some(gate + i, n - i), _mm256_setzero_ps());
    store_some(out + i, _mm256_mul_ps(relu, load_some(up + i, n - i)), n - i);
  }
}

void swiglu_clamped(const float* gate, const float* up, size_t n, float* out) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 limit = _mm256_set1_ps(kSwigluLimit);
  const __m256 alpha = _mm256_set1_ps(kSwigluAlpha);
  for (size_t i = 0; i < n; i += kLanes) {
    const __m256 g = _mm256_min_ps(load_some(gate + i, n - i), limit);
    const __m256 below = _mm256_min_ps(load_some(up + i, n - i), limit);
    const __m256 u = _mm256_max_ps(below, _mm256_set1_ps(-kSwigluLimit));
    const __m256 e = exp_lanes(_mm256_xor_ps(_mm256_mul_ps(alpha, g), sign));
    const __m256 swish = _mm256_div_ps(g, _mm256_add_ps(one, e));
    store_some(out + i, _mm256_mul_ps(swish, _mm256_add_ps(u, one)), n - i);
  }
}

void soft_cap(float cap, size_t n, float* x) {
  const __m256 limit = _mm256_set1_ps(cap);
  for (size_t i = 0; i < n; i += kLanes) {
    const __m256 share = _mm256_div_ps(load_some(x + i, n - i), limit);
    store_some(x + i, _mm256_mul_ps(limit, tanh_lanes(share)), n - i);
  }
}

void softmax(float* x, size_t n) {
  const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
  __m256 max = lowest;
  for (size_t i = 0; i < n; i += kLanes) {
    const __m256 exists = _mm256_castsi256_ps(first_lanes(n - i));
    max = _mm256_max_ps(_mm256_blendv_ps(lowest, load_some(x + i, n - i), exists), max);
  }
  max = _mm256_set1_ps(max_lane(max));
  __m256 sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (size_t i = 0; i < n; i += 2 * kLanes) {
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      const size_t at = i + half * kLanes;
      const size_t count = left(at, n);
      const __m256 e = exp_lanes(_mm256_sub_ps(load_some(x + at, count), max));
      store_some(x + at, e, count);
      sums[half] =
          _mm256_add_ps(sums[half], _mm256_and_ps(e, _mm256_castsi256_ps(first_lanes(count))));
    }
  }
  const __m256 total = _mm256_set1_ps(fold_lanes(sums[0], sums[1]));
  for (size_t i = 0; i < n; i += kLanes)
    store_some(x + i, _mm256_div_ps(load_some(x + i, n - i), total), n - i);
}

void rope_neox(float* x, const float* cos, const float* sin, size_t pairs) {
  for (size_t i = 0; i < pairs; i += kLanes) {
    const size_t count = pairs - i;
    const __m256 a = load_some(x + i, count);
    const __m256 b = load_some(x + pairs + i, count);
    const __m256 c = load_some(cos + i, count);
    const __m256 s = load_some(sin + i, count);
    store_some(x + i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)), count);
    store_some(x + pairs + i, _mm256_fmadd_ps(a, s, _mm256_mul_ps(b, c)), count);
  }
}

void rope_adjacent(float* x, const float* cos, const float* sin, size_t pairs) {
  for (size_t i = 0; i < pairs; i += kLanes) {
    const __m256 c = load_some(cos + i, pairs - i);
    const __m256 s = load_some(sin + i, pairs - i);
    const __m256 low = _mm256_unpacklo_ps(c, s);  // c0 s0 c1 s1, c4 s4 c5 s5
    const __m256 high = _mm256_unpackhi_ps(c, s);
    const __m256 turns[2] = {_mm256_permute2f128_ps(low, high, 0x20),
                             _mm256_permute2f128_ps(low, high, 0x31)};
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      const size_t at = 2 * i + half * kLanes;
      const size_t count = left(at, 2 * pairs);
      const __m256 v = load_some(x + at, count);
      const __m256 a = _mm256_moveldup_ps(v);
      const __m256 b = _mm256_movehdup_ps(v);
      const __m256 swapped = _mm256_permute_ps(turns[half], 0xb1);  // s0 c0 s1 c1 …
      store_some(x + at, _mm256_fmaddsub_ps(a, turns[half], _mm256_mul_ps(b, swapped)), count);
    }
  }
}

}  // namespace sluice::kernels::avx2

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

}  // namespace sluice::kernels::avx2

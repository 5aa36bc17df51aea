// What several kernels need from eight float lanes: the end of sum16 (kernels.h), exp of
// base/elementary.h in vector form, and a last, partial register. Private to the including file.
#pragma once

#include <cstddef>

#include "base/elementary.h"
#include "kernels/avx2/intrinsics.h"

namespace sluice::kernels::avx2 {
namespace {

constexpr size_t kLanes = 8;

/// All bits set in lanes below `count`.
inline __m256i first_lanes(size_t count) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lanes);
}

/// Eight floats of which only the first `count` exist; the others read as 0 and are not written.
inline __m256 load_some(const float* from, size_t count) {
  if (count >= kLanes) return _mm256_loadu_ps(from);
  return _mm256_maskload_ps(from, first_lanes(count));
}

inline void store_some(float* to, __m256 v, size_t count) {
  if (count >= kLanes) return _mm256_storeu_ps(to, v);
  _mm256_maskstore_ps(to, first_lanes(count), v);
}

/// Lane i += lane i + 8, then i + 4, i + 2, i + 1: the end of sum16, whose lanes are 0–7 and 8–15.
inline float fold_lanes(__m256 low, __m256 high) {
  const __m256 eight = _mm256_add_ps(low, high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

inline float max_lane(__m256 lanes) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/// exp_f32 of base/elementary.h.
inline __m256 exp_lanes(__m256 x) {
  using C = ExpConstants;
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 round = _mm256_set1_ps(C::kRound);
  const __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(C::kLog2E), round);
  const __m256 n = _mm256_sub_ps(shifted, round);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(C::kLn2High), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(C::kLn2Low), r);
  __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(C::kC6), r, _mm256_set1_ps(C::kC5));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(C::kC4));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(C::kC3));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(C::kC2));
  p = _mm256_fmadd_ps(p, r, one);
  p = _mm256_fmadd_ps(p, r, one);
  const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
  const __m256 result = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
  const __m256 low = _mm256_cmp_ps(x, _mm256_set1_ps(C::kLow), _CMP_LT_OQ);
  const __m256 high = _mm256_cmp_ps(x, _mm256_set1_ps(C::kHigh), _CMP_GT_OQ);
  return _mm256_blendv_ps(_mm256_andnot_ps(low, result), _mm256_set1_ps(__builtin_inff()), high);
}

/// 1 + e^−x: what sigmoid_f32 and silu_f32 divide by.
inline __m256 one_and_exp_of_minus(__m256 x) {
  return _mm256_add_ps(_mm256_set1_ps(1.0f), exp_lanes(_mm256_xor_ps(x, _mm256_set1_ps(-0.0f))));
}

inline __m256 sigmoid_lanes(__m256 x) {
  return _mm256_div_ps(_mm256_set1_ps(1.0f), one_and_exp_of_minus(x));
}

inline __m256 silu_lanes(__m256 x) {
  return _mm256_div_ps(x, one_and_exp_of_minus(x));
}

/// softplus_f32 of base/elementary.h.
inline __m256 softplus_lanes(__m256 x) {
  using C = LogConstants;
  const __m256 y = exp_lanes(_mm256_or_ps(x, _mm256_set1_ps(-0.0f)));
  const __m256 s = _mm256_div_ps(y, _mm256_add_ps(_mm256_set1_ps(2.0f), y));
  const __m256 z = _mm256_mul_ps(s, s);
  __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(C::kC11), z, _mm256_set1_ps(C::kC9));
  p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(C::kC7));
  p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(C::kC5));
  p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(C::kC3));
  const __m256 twice = _mm256_add_ps(s, s);
  return _mm256_add_ps(_mm256_max_ps(x, _mm256_setzero_ps()),
                       _mm256_fmadd_ps(_mm256_mul_ps(twice, z), p, twice));
}

/// tanh_f32 of base/elementary.h.
inline __m256 tanh_lanes(__m256 x) {
  using C = TanhConstants;
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 z = _mm256_mul_ps(x, x);
  __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(C::kC4), z, _mm256_set1_ps(C::kC3));
  p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(C::kC2));
  p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(C::kC1));
  p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(C::kC0));
  const __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(x, z), p, x);
  const __m256 magnitude = _mm256_andnot_ps(sign, x);
  const __m256 e = exp_lanes(_mm256_add_ps(magnitude, magnitude));
  const __m256 rest = _mm256_div_ps(_mm256_set1_ps(2.0f), _mm256_add_ps(one, e));
  const __m256 large = _mm256_andnot_ps(sign, _mm256_sub_ps(one, rest));
  const __m256 is_small = _mm256_cmp_ps(magnitude, _mm256_set1_ps(C::kSmall), _CMP_LT_OQ);
  return _mm256_blendv_ps(_mm256_or_ps(large, _mm256_and_ps(sign, x)), small, is_small);
}

}  // namespace
}  // namespace sluice::kernels::avx2

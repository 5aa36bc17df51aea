// What several kernels need from 16 float lanes: the sum16 of kernels.h, exp of base/elementary.h
// in vector form, and the mask of a last, partial register. Private to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/elementary.h"
#include "kernels/avx512/intrinsics.h"

namespace sluice::kernels::avx512 {
namespace {

constexpr size_t kLanes = 16;

/// The lanes of the elements first … n − 1, all 16 if there are more.
inline __mmask16 lanes_left(size_t first, size_t n) {
  return n - first >= kLanes ? 0xffff : static_cast<__mmask16>((1u << (n - first)) - 1);
}

/// Lane i += lane i + 8, then i + 4, i + 2, i + 1: the end of sum16.
inline float fold_lanes(__m512 lanes) {
  const __m256 eight =
      _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

inline float max_lane(__m512 lanes) {
  const __m256 eight =
      _mm256_max_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/// exp_f32 of base/elementary.h.
inline __m512 exp_lanes(__m512 x) {
  using C = ExpConstants;
  const __m512 round = _mm512_set1_ps(C::kRound);
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(C::kLog2E), round);
  const __m512 n = _mm512_sub_ps(shifted, round);
  __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-C::kLn2High), x);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(-C::kLn2Low), r);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(C::kC6), r, _mm512_set1_ps(C::kC5));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(C::kC4));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(C::kC3));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(C::kC2));
  p = _mm512_fmadd_ps(p, r, one);
  p = _mm512_fmadd_ps(p, r, one);
  const __m512i power = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
  const __m512 result = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), power));
  const __mmask16 not_low = _mm512_cmp_ps_mask(x, _mm512_set1_ps(C::kLow), _CMP_NLT_UQ);
  const __mmask16 high = _mm512_cmp_ps_mask(x, _mm512_set1_ps(C::kHigh), _CMP_GT_OQ);
  const __m512 infinity = _mm512_castsi512_ps(_mm512_set1_epi32(0x7f800000));
  return _mm512_mask_mov_ps(_mm512_maskz_mov_ps(not_low, result), high, infinity);
}

/// 1 + e^−x: what sigmoid_f32 and silu_f32 divide by.
inline __m512 one_and_exp_of_minus(__m512 x) {
  return _mm512_add_ps(_mm512_set1_ps(1.0f), exp_lanes(_mm512_xor_ps(x, _mm512_set1_ps(-0.0f))));
}

inline __m512 sigmoid_lanes(__m512 x) {
  return _mm512_div_ps(_mm512_set1_ps(1.0f), one_and_exp_of_minus(x));
}

inline __m512 silu_lanes(__m512 x) {
  return _mm512_div_ps(x, one_and_exp_of_minus(x));
}

/// softplus_f32 of base/elementary.h.
inline __m512 softplus_lanes(__m512 x) {
  using C = LogConstants;
  const __m512 y = exp_lanes(_mm512_or_ps(x, _mm512_set1_ps(-0.0f)));
  const __m512 s = _mm512_div_ps(y, _mm512_add_ps(_mm512_set1_ps(2.0f), y));
  const __m512 z = _mm512_mul_ps(s, s);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(C::kC11), z, _mm512_set1_ps(C::kC9));
  p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(C::kC7));
  p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(C::kC5));
  p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(C::kC3));
  const __m512 twice = _mm512_add_ps(s, s);
  return _mm512_add_ps(_mm512_max_ps(x, _mm512_setzero_ps()),
                       _mm512_fmadd_ps(_mm512_mul_ps(twice, z), p, twice));
}

/// tanh_f32 of base/elementary.h.
inline __m512 tanh_lanes(__m512 x) {
  using C = TanhConstants;
  const __m512 sign = _mm512_set1_ps(-0.0f);
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 z = _mm512_mul_ps(x, x);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(C::kC4), z, _mm512_set1_ps(C::kC3));
  p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(C::kC2));
  p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(C::kC1));
  p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(C::kC0));
  const __m512 small = _mm512_fmadd_ps(_mm512_mul_ps(x, z), p, x);
  const __m512 magnitude = _mm512_andnot_ps(sign, x);
  const __m512 e = exp_lanes(_mm512_add_ps(magnitude, magnitude));
  const __m512 rest = _mm512_div_ps(_mm512_set1_ps(2.0f), _mm512_add_ps(one, e));
  const __m512 large = _mm512_andnot_ps(sign, _mm512_sub_ps(one, rest));
  const __mmask16 is_small = _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(C::kSmall), _CMP_LT_OQ);
  return _mm512_mask_mov_ps(_mm512_or_ps(large, _mm512_and_ps(sign, x)), is_small, small);
}

}  // namespace
}  // namespace sluice::kernels::avx512

// exp_f32 of base/elementary.h, eight at a time and the same bits.
#pragma once

#include <immintrin.h>

#include "base/elementary.h"

namespace sluice::kernels::avx2 {
namespace {

inline __m256 exp8(__m256 x) {
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

}  // namespace
}  // namespace sluice::kernels::avx2

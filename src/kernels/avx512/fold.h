// Sums across the lanes of several registers at once: every step folds two registers into one, so
// that the sums of 16 registers cost 15 steps instead of 64. Integers, so any order is exact.
//
// Each step says what it adds and what then lies side by side. Lane r ends with the sum of register
// r if halves are folded of registers eight apart, then quarters four, eighths two and lane pairs
// one apart. A step is a blend, which any vector unit does, a shuffle and an addition.
//
// Private to the file that includes it.
#pragma once

#include "kernels/avx512/intrinsics.h"

namespace sluice::kernels::avx512 {
namespace {

/// The halves of a are added, and those of b: [a b], 8 lanes each.
inline __m512i fold_halves(__m512i a, __m512i b) {
  const __m512i swapped = _mm512_shuffle_i64x2(a, b, 0x4e);  // a's upper half, b's lower
  return _mm512_add_epi32(_mm512_mask_blend_epi32(0xff00, a, b), swapped);
}

/// The same in each half: [a b a b], 4 lanes each.
inline __m512i fold_quarters(__m512i a, __m512i b) {
  const __m512i order = _mm512_setr_epi64(2, 3, 8, 9, 6, 7, 12, 13);
  const __m512i swapped = _mm512_permutex2var_epi64(a, order, b);
  return _mm512_add_epi32(_mm512_mask_blend_epi32(0xf0f0, a, b), swapped);
}

/// In each quarter: 2 lanes each.
inline __m512i fold_eighths(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_mask_blend_epi32(0xcccc, a, b), _mm512_alignr_epi8(b, a, 8));
}

/// In each eighth: one lane each.
inline __m512i fold_lane_pairs(__m512i a, __m512i b) {
  const __m512i others = _mm512_mask_blend_epi32(0xaaaa, b, a);
  return _mm512_add_epi32(_mm512_mask_blend_epi32(0xaaaa, a, b), _mm512_rol_epi64(others, 32));
}

/// [a b c d] in each quarter, whose own four lanes are added.
inline __m512i fold_four(__m512i a, __m512i b, __m512i c, __m512i d) {
  return fold_lane_pairs(fold_eighths(a, c), fold_eighths(b, d));
}

/// The same where sums of two lanes fit an int16: packing puts side by side, and vpmaddwd adds.
inline __m512i fold_four_small(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i one = _mm512_set1_epi16(1);
  const __m512i ab = _mm512_madd_epi16(_mm512_packs_epi32(a, b), one);
  const __m512i cd = _mm512_madd_epi16(_mm512_packs_epi32(c, d), one);
  return _mm512_madd_epi16(_mm512_packs_epi32(ab, cd), one);
}

/// Lane by lane, the sum of the quarters.
inline __m128i add_quarters(__m512i x) {
  const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/// Lane r is the sum of the lanes of quarter r.
inline __m128i add_in_quarters(__m512i x) {
  const __m512i twos = _mm512_add_epi32(x, _mm512_bsrli_epi128(x, 8));
  const __m512i ones = _mm512_add_epi32(twos, _mm512_bsrli_epi128(twos, 4));
  const __m512i lanes = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
  return _mm512_castsi512_si128(_mm512_permutexvar_epi32(lanes, ones));
}

}  // namespace
}  // namespace sluice::kernels::avx512

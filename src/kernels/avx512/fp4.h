// The codes and scales of MXFP4 and NVFP4; quant/fp4.h defines them. Private to the including file.
#pragma once

#include "kernels/avx512/panel.h"
#include "quant/fp4.h"

namespace sluice::kernels::avx512 {
namespace {

constexpr int kFp4Offset = 12;

/// What stands for each code: its value, doubled, plus kFp4Offset.
inline __m128i fp4_codes() {
  const auto at = [](size_t i) { return static_cast<char>(kTwiceE2m1[i] + kFp4Offset); };
  return _mm_setr_epi8(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9), at(10),
                       at(11), at(12), at(13), at(14), at(15));
}

/// The byte at `offset` of each row.
inline __m128i load_byte(const PanelBlocks& blocks, size_t offset) {
  alignas(16) std::byte bytes[kPanelRows];
  for (size_t r = 0; r < kPanelRows; ++r) bytes[r] = blocks.first[offset + r * blocks.row_bytes];
  return load_16(bytes);
}

/// Of an integer in each lane. The exponent is e − 1, and where that is not positive the float is
/// subnormal.
inline __m512 half_of_e8m0(__m512i e) {
  const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
  const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x200000), e);
  const __mmask16 is_small = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
  return _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, is_small, subnormal));
}
inline __m512 half_of_e8m0(__m128i bytes) {
  return half_of_e8m0(_mm512_cvtepu8_epi32(bytes));
}

/// Read as binary16, the exponent is 8 too small; and it is to be the half.
inline __m512 half_of_e4m3(__m128i bytes) {
  const __m128i magnitudes = _mm_and_si128(bytes, _mm_set1_epi8(0x7f));
  const __mmask16 is_number = _mm_cmpneq_epi8_mask(bytes, _mm_set1_epi8(0x7f));
  const __m256i halves = _mm256_slli_epi16(_mm256_maskz_cvtepu8_epi16(is_number, magnitudes), 7);
  return _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(0x1p7f));
}

}  // namespace
}  // namespace sluice::kernels::avx512

// Small fields of 16 rows, a row in each lane, made into numbers: where formats unpack their
// scales.
#pragma once

#include "kernels/avx512/panel.h"

namespace sluice::kernels::avx512 {
namespace {

/// Spreads the four bytes of each lane over four registers.
inline void spread_bytes(__m512i bytes, int32_t (*out)[kPanelRows]) {
  const __m512i low_byte = _mm512_set1_epi32(0xff);
  _mm512_store_si512(out[0], _mm512_and_si512(bytes, low_byte));
  _mm512_store_si512(out[1], _mm512_and_si512(_mm512_srli_epi32(bytes, 8), low_byte));
  _mm512_store_si512(out[2], _mm512_and_si512(_mm512_srli_epi32(bytes, 16), low_byte));
  _mm512_store_si512(out[3], _mm512_srli_epi32(bytes, 24));
}

/// The same for two registers of int16 pairs: bytes 0 and 2, then 1 and 3.
inline void spread_pairs(__m512i bytes, int32_t (*out)[kPanelRows]) {
  const __m512i even_bytes = _mm512_set1_epi32(0x00ff00ff);
  _mm512_store_si512(out[0], _mm512_and_si512(bytes, even_bytes));
  _mm512_store_si512(out[1], _mm512_and_si512(_mm512_srli_epi32(bytes, 8), even_bytes));
}

/// As spread_bytes, with their signs.
inline void spread_signed_bytes(__m512i bytes, int32_t (*out)[kPanelRows]) {
  _mm512_store_si512(out[0], _mm512_srai_epi32(_mm512_slli_epi32(bytes, 24), 24));
  _mm512_store_si512(out[1], _mm512_srai_epi32(_mm512_slli_epi32(bytes, 16), 24));
  _mm512_store_si512(out[2], _mm512_srai_epi32(_mm512_slli_epi32(bytes, 8), 24));
  _mm512_store_si512(out[3], _mm512_srai_epi32(bytes, 24));
}

/// Binary16 in the low half of each lane.
inline __m512 widen_low_halves(__m512i lanes) {
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(lanes));
}

}  // namespace
}  // namespace sluice::kernels::avx512

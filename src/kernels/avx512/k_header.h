// The first 16 bytes of a Q4_K or Q5_K block: d, dmin and the packed scales, for 16 rows at once.
// quant/blocks.h describes the packing (unpack_k_scales).
#pragma once

#include "kernels/avx512/spread.h"
#include "kernels/avx512/super_block.h"

namespace sluice::kernels::avx512 {
namespace {

inline void unpack_k_header(const PanelBlocks& blocks, SuperScales& scales) {
  __m512i header[4];  // d and dmin; scales 0 … 3; mins 0 … 3; low halves of scales and mins 4 … 7
  load_dwords(blocks, 0, header);
  scales.d = widen_low_halves(header[0]);
  scales.dmin = widen_low_halves(_mm512_srli_epi32(header[0], 16));
  const __m512i six_bits = _mm512_set1_epi8(0x3f);
  const __m512i low_half = _mm512_set1_epi8(0x0f);
  const __m512i upper_two = _mm512_set1_epi8(0x30);
  const auto top_bits = [&](__m512i bytes) {  // bits 6 and 7 become 4 and 5
    return _mm512_and_si512(_mm512_srli_epi32(bytes, 2), upper_two);
  };
  spread_bytes(_mm512_and_si512(header[1], six_bits), scales.scale);
  spread_bytes(_mm512_or_si512(_mm512_and_si512(header[3], low_half), top_bits(header[1])),
               scales.scale + 4);
  spread_pairs(_mm512_and_si512(header[2], six_bits), scales.min);
  const __m512i min_low = _mm512_and_si512(_mm512_srli_epi32(header[3], 4), low_half);
  spread_pairs(_mm512_or_si512(min_low, top_bits(header[2])), scales.min + 2);
}

}  // namespace
}  // namespace sluice::kernels::avx512

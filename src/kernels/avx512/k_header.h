// What Q4_K and Q5_K share: the first 16 bytes of a block, which are d, dmin and the packed scales
// (quant/blocks.h describes the packing, unpack_k_scales), and the order of the columns. Private to
// the including file.
#pragma once

#include "kernels/avx512/row_super_block.h"
#include "kernels/avx512/spread.h"
#include "kernels/avx512/super_block.h"

namespace sluice::kernels::avx512 {
namespace {

/// For 16 rows at once.
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

/// In each quarter eight scales, then eight mins, as bytes.
inline __m512i scales_and_mins(__m512i headers) {
  const __m512i order = _mm512_broadcast_i32x4(
      _mm_setr_epi8(4, 5, 6, 7, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15));
  const __m512i packed = _mm512_shuffle_epi8(headers, order);
  const __m512i low_at = _mm512_broadcast_i32x4(
      _mm_setr_epi8(0, 8, 16, 24, 32, 40, 48, 56, 0, 8, 16, 24, 36, 44, 52, 60));
  const __m512i low_mask = _mm512_set1_epi64(0x0f0f0f0f3f3f3f3f);
  const __m512i top_at = _mm512_broadcast_i32x4(
      _mm_setr_epi8(2, 10, 18, 26, 2, 10, 18, 26, 2, 10, 18, 26, 2, 10, 18, 26));
  const __m512i top_mask = _mm512_set1_epi64(0x3030303000000000);
  const __m512i low = _mm512_and_si512(_mm512_multishift_epi64_epi8(low_at, packed), low_mask);
  const __m512i top = _mm512_multishift_epi64_epi8(top_at, packed);
  return _mm512_ternarylogic_epi64(low, top, top_mask, 0xf8);  // low | (top & top_mask)
}

inline void unpack_k_scales(const Quad& blocks, const int16_t* sum32, QuadScales<8>& scales) {
  const __m512i headers = blocks.load_16_each(0);
  const __m512i bytes = scales_and_mins(headers);
  const __m512i zero = _mm512_setzero_si512();
  scales.scale[0] = _mm512_unpacklo_epi8(bytes, zero);
  const __m512i sums =
      _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(sum32)));
  scales.mins = _mm512_madd_epi16(_mm512_unpackhi_epi8(bytes, zero), sums);
  const __m512i firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
  const __m128i both = _mm512_castsi512_si128(_mm512_permutexvar_epi32(firsts, headers));
  const __m256 halves = _mm256_cvtph_ps(
      _mm_shuffle_epi8(both, _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15)));
  scales.d = _mm256_castps256_ps128(halves);
  scales.dmin = _mm256_extractf128_ps(halves, 1);
}

/// A format of super_block.h, but for its codes.
template <class Block>
struct KPanel : AscendingRuns {
  static_assert(offsetof(Block, d) == 0 && offsetof(Block, scales) == 4);
  static constexpr size_t kBlockBytes = sizeof(Block);
  static constexpr size_t kSubColumns = 32;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true;

  static inline void unpack_scales(const PanelBlocks& blocks, SuperScales& scales) {
    unpack_k_header(blocks, scales);
  }
};

/// A format of row_super_block.h, but for its codes.
template <class Panel>
struct KRows {
  using Panels = SuperBlocks<Panel>;
  static constexpr size_t kSubColumns = Panel::kSubColumns;
  static constexpr int kOffset = Panel::kOffset;
  static constexpr bool kHasMin = Panel::kHasMin;
  static constexpr bool kWide = false;

  static constexpr size_t column(size_t k, size_t quarter) {
    return 128 * (k / 2) + 32 * (k % 2) + 64 * (quarter / 2) + 16 * (quarter % 2);
  }

  static inline void scales(const Quad& blocks, const int16_t* sum32, QuadScales<8>& scales) {
    unpack_k_scales(blocks, sum32, scales);
  }
};

}  // namespace
}  // namespace sluice::kernels::avx512

// The formats in blocks of 32 whose codes are half bytes, 16 low ones before 16 high ones, with or
// without a fifth bit elsewhere: Q4_0 and Q5_0. A code q stands for q − kOffset, so kOffset · Σ x
// comes off each sum.
//
// A format is a struct with
//   Block, kOffset
//   fifths(block)   bit 4 of each of the 32 codes, in the bytes of a register
#pragma once

#include <cstddef>

#include "kernels/avx2/avx2.h"
#include "kernels/avx2/panel_matmul.h"
#include "quant/blocks.h"

namespace sluice::kernels::avx2 {
namespace {

template <class Format>
struct NibbleBlocks {
  using Block = typename Format::Block;
  static constexpr size_t kElements = kSmallBlock;
  static constexpr size_t kBlockBytes = sizeof(Block);
  static constexpr size_t kChunk = 64;

  struct PanelBlock {
    alignas(32) uint8_t codes[kSmallBlock / 8][2][32];  ///< [8 columns][half A, B][4 rows]
    float d[kPanelRows];
  };

  static __m256 add_block(__m256 d, const Activations& x, __m256i sums, __m256 acc) {
    const __m256i excess = _mm256_set1_epi32(Format::kOffset * (x.sum16[0] + x.sum16[1]));
    const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(*x.scale));
    return _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(_mm256_sub_epi32(sums, excess)), acc);
  }

  static __m256i codes(const std::byte* block) {
    const __m128i both = load16(block + offsetof(Block, qs));
    const __m256i nibbles = low_half_bytes(_mm256_setr_m128i(both, _mm_srli_epi16(both, 4)));
    return _mm256_or_si256(nibbles, Format::fifths(block));
  }

  static __m256 add_rows(const std::byte* const* blocks, const Activations& x, __m256 acc) {
    const __m256i xq = load32(x.q);
    __m256i sums[kPanelRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kPanelRows; ++r)
      sums[r] = widen_pairs(_mm256_maddubs_epi16(codes(blocks[r]), xq));
    return add_block(half_of_each(blocks, offsetof(Block, d)), x, sum_each(sums), acc);
  }

  static void unpack(const std::byte* const* blocks, PanelBlock& panel) {
    __m256i low[4];
    __m256i high[4];
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      constexpr size_t kOffset = offsetof(Block, qs);
      const __m256i both = load16_each(blocks[j] + kOffset, blocks[j + 4] + kOffset);
      const __m256i first = Format::fifths(blocks[j]);
      const __m256i second = Format::fifths(blocks[j + 4]);
      low[j] =
          _mm256_or_si256(low_half_bytes(both), _mm256_permute2x128_si256(first, second, 0x20));
      high[j] = _mm256_or_si256(low_half_bytes(_mm256_srli_epi16(both, 4)),
                                _mm256_permute2x128_si256(first, second, 0x31));
    }
    interleave(low, panel.codes[0][0]);
    interleave(high, panel.codes[2][0]);
    _mm256_store_ps(panel.d, half_of_each(blocks, offsetof(Block, d)));
  }

  template <size_t N>
  static void add_panel(const PanelBlock& panel, const Activations* x, __m256* acc) {
    __m256i a[N];
    __m256i b[N];
    static_assert(4 * 31 * 127 * 2 < 1 << 15, "the pair sums of four steps fit an int16");
    sum_codes<4, N>(panel.codes, 0, x, a);
    sum_codes<4, N>(panel.codes, 1, x, b);
    const __m256 d = _mm256_load_ps(panel.d);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) acc[n] = add_block(d, x[n], add_pairs(a[n], b[n]), acc[n]);
  }
};

}  // namespace
}  // namespace sluice::kernels::avx2

// What the formats of 32 elements per block share: one scale per block, against q8_32 rows.
//
// Products come from vpmaddubsw as int16 pair sums, are added up while they fit, and vpmaddwd with
// ones widens them to int32. A panel keeps eight rows in two halves as k_formats.h describes.
//
// A format has
//   kBlockBytes, kOffsetD
//   kPairSums                  pair sums that fit an int16: 1 or 4
//   kOffset                    what its codes are above the true value
//   codes(block)               the 32 codes of a block
//   codes(low, high, piece)    codes 16·piece … of two blocks
//   multiply(codes, x)         int16 pair sums
#pragma once

#include "kernels/avx2/quantised_matmul.h"
#include "quant/blocks.h"

namespace sluice::kernels::avx2 {
namespace {

template <class F>
struct SmallFormat {
  static constexpr size_t kElements = kSmallBlock;
  static constexpr size_t kBlockBytes = F::kBlockBytes;
  static constexpr size_t kChunk = 64;

  struct PanelBlock {
    alignas(32) uint8_t codes[kSmallBlock / 8][2][32];  ///< [8 columns][half A, B][4 rows × 8]
    float d[kPanelRows];
  };

  static __m256i widen(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }

  /// The float step of one block for eight rows.
  static __m256 add_block(__m256 d, const Activations& x, __m256i sums, __m256 acc) {
    if constexpr (F::kOffset != 0) {
      const int excess = F::kOffset * (x.sum16[0] + x.sum16[1]);
      sums = _mm256_sub_epi32(sums, _mm256_set1_epi32(excess));
    }
    const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(*x.scale));
    return _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(sums), acc);
  }

  static __m256 add_rows(const std::byte* const* blocks, const Activations& x, __m256 acc) {
    const __m256i xq = load32(x.q);
    __m256i sums[kPanelRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kPanelRows; ++r) sums[r] = widen(F::multiply(F::codes(blocks[r]), xq));
    return add_block(half_of_each(blocks, F::kOffsetD), x, sum_each(sums), acc);
  }

  static void unpack(const std::byte* const* blocks, PanelBlock& panel) {
#pragma GCC unroll 2
    for (size_t piece = 0; piece < 2; ++piece) {
      __m256i pair[4];
#pragma GCC unroll 4
      for (size_t j = 0; j < 4; ++j) pair[j] = F::codes(blocks[j], blocks[j + 4], piece);
      __m256i to[4];
      interleave(pair, to);
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; ++i) store32(panel.codes[2 * piece + i / 2][i % 2], to[i]);
    }
    _mm256_store_ps(panel.d, half_of_each(blocks, F::kOffsetD));
  }

  /// Σ q·x of one half of a panel; rows have two lanes each.
  template <size_t N>
  static void sum_half(const PanelBlock& panel, size_t half, const Activations* x, __m256i* sums) {
    __m256i pairs[N];
#pragma GCC unroll 4
    for (size_t i = 0; i < kSmallBlock / 8; ++i) {
      const __m256i codes = load32(panel.codes[i][half]);
#pragma GCC unroll 4
      for (size_t n = 0; n < N; ++n) {
        const __m256i product = F::multiply(codes, broadcast8(x[n].q + 8 * i));
        pairs[n] = i % F::kPairSums == 0 ? product : _mm256_add_epi16(pairs[n], product);
        keep_order(pairs[n]);
        if ((i + 1) % F::kPairSums == 0) {
          const __m256i wide = widen(pairs[n]);
          sums[n] = i < F::kPairSums ? wide : _mm256_add_epi32(sums[n], wide);
          keep_order(sums[n]);
        }
      }
    }
  }

  template <size_t N>
  static void add_panel(const PanelBlock& panel, const Activations* x, __m256* acc) {
    __m256i a[N];
    __m256i b[N];
    sum_half<N>(panel, 0, x, a);
    sum_half<N>(panel, 1, x, b);
    const __m256 d = _mm256_load_ps(panel.d);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) acc[n] = add_block(d, x[n], add_pairs(a[n], b[n]), acc[n]);
  }
};

}  // namespace
}  // namespace sluice::kernels::avx2

// The formats in blocks of 32, 64 or 128 whose weights are unsigned codes of up to five bits less
// an offset: one float scale per 32 columns or per 16, and perhaps a float that is added to each
// weight. kOffset · Σ x comes off each integer sum.
//
// A format is a struct with
//   Block, kElements
//   kOffset, kCodeMax
//   kScaleColumns           columns per scale, 16 or 32
//   codes(blocks, part, to) the codes of the columns from 32·part on of eight blocks; see Codes
//   scales(blocks, s)       the eight floats d of the columns from kScaleColumns·s on
// A Block that has an m adds it to each weight.
#pragma once

#include <cstddef>

#include "kernels/avx2/panel_matmul.h"
#include "kernels/avx2/small_codes.h"
#include "quant/blocks.h"

namespace sluice::kernels::avx2 {
namespace {

/// What most of them are: one binary16 d per block.
template <class OneBlock, size_t kColumns = kSmallBlock>
struct HalfScaled {
  using Block = OneBlock;
  static constexpr size_t kElements = kColumns;
  static constexpr size_t kScaleColumns = kSmallBlock;

  static __m256 scales(const std::byte* const* blocks, size_t) {
    return half_of_each(blocks, offsetof(Block, d));
  }
};

template <class Format>
struct SmallBlocks {
  using Block = typename Format::Block;
  static constexpr size_t kElements = Format::kElements;
  static constexpr size_t kBlockBytes = sizeof(Block);
  static constexpr size_t kParts = kElements / kSmallBlock;
  static constexpr size_t kChunk = 64 / kParts;
  static constexpr size_t kScales = kElements / Format::kScaleColumns;
  static constexpr size_t kPartScales = kScales / kParts;
  static constexpr size_t kSteps = Format::kScaleColumns / 8;  ///< of 8 columns, per scale
  static constexpr bool kHasMin = requires(Block block) { block.m; };
  static_assert(kSteps * Format::kCodeMax * 127 * 2 < size_t{1} << 15);

  struct PanelBlock {
    Codes codes[kParts];
    __m256 d[kScales];
    __m256 m;  ///< if the format has one
  };

  static void unpack(const std::byte* const* blocks, PanelBlock& panel) {
#pragma GCC unroll 4
    for (size_t part = 0; part < kParts; ++part) Format::codes(blocks, part, panel.codes[part]);
#pragma GCC unroll 4
    for (size_t s = 0; s < kScales; ++s) panel.d[s] = Format::scales(blocks, s);
    if constexpr (kHasMin) panel.m = half_of_each(blocks, offsetof(Block, m));
  }

  /// Σ q·x over the columns of scale s, of one half. All the pair sums of a scale fit an int16.
  template <size_t N>
  static void sum_half(const PanelBlock& panel, size_t s, size_t half, const Activations* x,
                       __m256i* sums) {
    __m256i pairs[N];
#pragma GCC unroll 4
    for (size_t i = 0; i < kSteps; ++i) {
      const size_t step = s * kSteps + i;
      const __m256i q = panel.codes[step / 4].q[step % 4][half];
#pragma GCC unroll 4
      for (size_t n = 0; n < N; ++n) {
        const __m256i products = _mm256_maddubs_epi16(q, broadcast8(x[n].q + 8 * step));
        pairs[n] = i == 0 ? products : _mm256_add_epi16(pairs[n], products);
        keep(pairs[n]);
      }
    }
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) sums[n] = widen_pairs(pairs[n]);
  }

  /// Σ x over the columns of scale s.
  static int column_sum(const Activations& x, size_t s) {
    if constexpr (Format::kScaleColumns == 16) return x.sum16[s];
    return x.sum16[2 * s] + x.sum16[2 * s + 1];
  }

  /// The float step of kernels.h for the columns of scale s.
  static __m256 add_scaled(__m256 d, const Activations& x, size_t s, __m256i sums, __m256 acc) {
    const __m256i excess = _mm256_set1_epi32(Format::kOffset * column_sum(x, s));
    const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(x.scale[s / kPartScales]));
    return _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(_mm256_sub_epi32(sums, excess)), acc);
  }

  /// The same for what is added to each weight.
  static __m256 add_offset(__m256 m, const Activations& x, __m256 acc) {
    const __m256 sum = _mm256_set1_ps(static_cast<float>(column_sum(x, 0)));
    return _mm256_fmadd_ps(_mm256_mul_ps(m, _mm256_set1_ps(*x.scale)), sum, acc);
  }

  template <size_t N>
  static void add_panel(const PanelBlock& panel, const Activations* x, __m256* acc) {
#pragma GCC unroll 4
    for (size_t s = 0; s < kScales; ++s) {
      __m256i a[N];
      __m256i b[N];
      sum_half<N>(panel, s, 0, x, a);
      sum_half<N>(panel, s, 1, x, b);
#pragma GCC unroll 4
      for (size_t n = 0; n < N; ++n)
        acc[n] = add_scaled(panel.d[s], x[n], s, add_pairs(a[n], b[n]), acc[n]);
    }
    if constexpr (kHasMin) {
#pragma GCC unroll 4
      for (size_t n = 0; n < N; ++n) acc[n] = add_offset(panel.m, x[n], acc[n]);
    }
  }

  /// Of one token; the panel stays in registers.
  static __m256 add_rows(const std::byte* const* blocks, const Activations& x, __m256 acc) {
    PanelBlock panel;
    unpack(blocks, panel);
    add_panel<1>(panel, &x, &acc);
    return acc;
  }
};

}  // namespace
}  // namespace sluice::kernels::avx2

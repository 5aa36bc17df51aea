// The formats in blocks of 32 whose weights are signed bytes: Q8_0 and IQ4_NL. signed_codes.h says
// how they meet signed activations.
//
// A format is a struct with
//   Block                 which has a binary16 d
//   weights(blocks, to)   the signed weights of eight blocks
#pragma once

#include <cstddef>

#include "kernels/avx2/panel_matmul.h"
#include "kernels/avx2/signed_codes.h"
#include "kernels/avx2/small_codes.h"
#include "quant/blocks.h"

namespace sluice::kernels::avx2 {
namespace {

template <class Format>
struct SignedBlocks {
  using Block = typename Format::Block;
  static constexpr size_t kElements = kSmallBlock;
  static constexpr size_t kBlockBytes = sizeof(Block);
  static constexpr size_t kChunk = 32;
  static constexpr size_t kSteps = kSmallBlock / 8;

  struct PanelBlock {
    Codes magnitudes;
    Codes flips;            ///< all bits where w < 0
    __m256i negative_sums;  ///< Σ |w| over w < 0
    __m256 d;
  };

  static __m256 add_block(__m256 d, const Activations& x, __m256i sums, __m256 acc) {
    const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(*x.scale));
    return _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(sums), acc);
  }

  static __m256 add_rows(const std::byte* const* blocks, const Activations& x, __m256 acc) {
    Codes weights;
    Format::weights(blocks, weights);
    __m256i sums[2];
#pragma GCC unroll 4
    for (size_t i = 0; i < kSteps; ++i) {
      const __m256i eight = broadcast8(x.q + 8 * i);
#pragma GCC unroll 2
      for (size_t half = 0; half < 2; ++half) {
        const __m256i w = weights.q[i][half];
        const __m256i products = widen_pairs(signed_pairs(w, eight));
        sums[half] = i == 0 ? products : _mm256_add_epi32(sums[half], products);
      }
    }
    const __m256 d = half_of_each(blocks, offsetof(Block, d));
    return add_block(d, x, add_pairs(sums[0], sums[1]), acc);
  }

  /// Turns the weights in `magnitudes` into magnitudes and flips; returns the negatives' sum, two
  /// lanes per row.
  static __m256i split_signs(PanelBlock& panel, size_t half) {
    __m256i negatives = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (size_t i = 0; i < kSteps; ++i) {
      const SplitWeights split = avx2::split_signs(panel.magnitudes.q[i][half]);
      panel.magnitudes.q[i][half] = split.magnitudes;
      panel.flips.q[i][half] = split.flips;
      negatives = _mm256_add_epi32(negatives, widen_pairs(split.negatives));
    }
    return negatives;
  }

  static void unpack(const std::byte* const* blocks, PanelBlock& panel) {
    Format::weights(blocks, panel.magnitudes);
    const __m256i a = split_signs(panel, 0);
    const __m256i b = split_signs(panel, 1);
    panel.negative_sums = add_pairs(a, b);
    panel.d = half_of_each(blocks, offsetof(Block, d));
  }

  template <size_t N>
  static void sum_half(const PanelBlock& panel, size_t half, const Activations* x, __m256i* sums) {
#pragma GCC unroll 4
    for (size_t i = 0; i < kSteps; ++i) {
      const __m256i magnitudes = panel.magnitudes.q[i][half];
      const __m256i flips = panel.flips.q[i][half];
#pragma GCC unroll 4
      for (size_t n = 0; n < N; ++n) {
        const __m256i signed_x = _mm256_xor_si256(broadcast8(x[n].q + 8 * i), flips);
        const __m256i products = widen_pairs(_mm256_maddubs_epi16(magnitudes, signed_x));
        sums[n] = i == 0 ? products : _mm256_add_epi32(sums[n], products);
        keep(sums[n]);
      }
    }
  }

  template <size_t N>
  static void add_panel(const PanelBlock& panel, const Activations* x, __m256* acc) {
    __m256i a[N];
    __m256i b[N];
    sum_half<N>(panel, 0, x, a);
    sum_half<N>(panel, 1, x, b);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      const __m256i sums = _mm256_add_epi32(add_pairs(a[n], b[n]), panel.negative_sums);
      acc[n] = add_block(panel.d, x[n], sums, acc[n]);
    }
  }
};

}  // namespace
}  // namespace sluice::kernels::avx2

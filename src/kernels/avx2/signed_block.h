// The formats in blocks of 32 whose weights are signed bytes: Q8_0 and IQ4_NL. vpmaddubsw wants one
// unsigned side: the magnitudes of the weights, whose sign goes to the activations. A file may hold
// −128; its magnitude is 128 as an unsigned byte, and 128 · 127 · 2 < 2^15.
//
// matvec does this with vpsignb. In a panel an exclusive or does: with m = −1 where w < 0, else 0,
//   w·x = |w|·((x ^ m) − m) = |w|·(x ^ m) + (w < 0 ? |w| : 0),
// and the last term belongs to the weights alone: it is summed while unpacking. Here, too, pair
// sums fit: 128 · −128 · 2 = −2^15.
//
// Tried for the panel on Zen 4, where this way makes 75 GMAC/s: vpsignb, which shares its two ports
// with the products, 62; w + 128 as two half bytes, four of whose pair sums fit an int16, 56.
//
// A format is a struct with
//   Block                 which has a binary16 d
//   weights(blocks, to)   the signed weights of eight blocks
#pragma once

#include <cstddef>

#include "kernels/avx2/avx2.h"
#include "kernels/avx2/panel_matmul.h"
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
        const __m256i products =
            widen_pairs(_mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(eight, w)));
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
      const __m256i w = panel.magnitudes.q[i][half];
      const __m256i flip = _mm256_cmpgt_epi8(_mm256_setzero_si256(), w);
      const __m256i magnitude = _mm256_abs_epi8(w);
      panel.magnitudes.q[i][half] = magnitude;
      panel.flips.q[i][half] = flip;
      const __m256i pairs =
          _mm256_maddubs_epi16(_mm256_and_si256(magnitude, flip), _mm256_set1_epi8(1));
      negatives = _mm256_add_epi32(negatives, widen_pairs(pairs));
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

// The formats in super-blocks of 256 columns, whose sub-blocks of 16 or 32 carry integer scales.
//
// Products of unsigned codes and signed activations come from vpmaddubsw as int16 pair sums; then
// vpmaddwd multiplies by the sub-block's scale and widens to int32. A panel adds up the pair sums
// of a whole sub-block first if they fit: 8 columns lie in a step, so that is two or four of them.
// What codes are above the true weight, and the mins, are factors of the activations' sums of 16.
//
// Codes may be signed and up to 127 instead; signed_codes.h says what then becomes of them. Pair
// sums fit an int16 then, but not the sum of two.
//
// A format is a struct with
//   kBlockBytes, kOffsetD
//   kStep                  only if d is to be multiplied with it
//   kSubBlock, kCodeMax    columns per scale, and the largest code
//   kSigned                whether codes are the weights themselves; there are no sum_weights then
//   kTwoSubBlocks          how codes lie, see column() below
//   kHasMin                dmin follows d, and sum_weights are mins; otherwise they belong to d
//   codes(source, g)       the codes of register g of eight (sources.h)
//   scales(block)          int16 scales in order; if there are only eight, twice
//   sum_weights(block)     int16 factors of sum16
//   Headers                if there is a quicker way to what eight blocks hold beside their codes
#pragma once

#include <type_traits>

#include "kernels/avx2/panel.h"
#include "kernels/avx2/panel_matmul.h"
#include "kernels/avx2/signed_codes.h"
#include "kernels/avx2/sources.h"
#include "quant/blocks.h"

namespace sluice::kernels::avx2 {
namespace {

/// A byte shuffle that gives word `low` in all of the low half, `high` in all of the high half.
inline __m256i word_shuffle(size_t low, size_t high) {
  const auto pattern = [](size_t word) { return static_cast<short>(0x0100 + 0x0202 * word); };
  return _mm256_setr_m128i(_mm_set1_epi16(pattern(low)), _mm_set1_epi16(pattern(high)));
}

/// A byte shuffle that gives word `k` of each four to all four.
inline __m256i fourfold_word_shuffle(size_t k) {
  const auto pattern = [](size_t word) {
    return static_cast<long long>(0x0100010001000100u + 0x0202020202020202u * word);
  };
  return _mm256_setr_epi64x(pattern(k), pattern(k + 4), pattern(k), pattern(k + 4));
}

template <class Format>
struct SuperBlocks {
  static constexpr size_t kElements = kSuperBlock;
  static constexpr size_t kBlockBytes = Format::kBlockBytes;
  static constexpr size_t kChunk = Format::kSigned ? 4 : 8;
  static constexpr size_t kSubBlocks = kSuperBlock / Format::kSubBlock;
  static constexpr size_t kSteps = Format::kSubBlock / 8;  ///< of 8 columns, per sub-block
  static constexpr size_t kPairMax = Format::kCodeMax * 2 * (Format::kSigned ? 128 : 127);
  static_assert(kPairMax < size_t{1} << 15);
  static constexpr size_t kScaledSteps =  ///< scaled together
      kSteps * kPairMax < size_t{1} << 15 ? kSteps : 1;

  /// The last two indices are half A or B and a register; see panel.h.
  struct Factors {
    alignas(64) int16_t sum_weights[4][2][16];
  };
  struct Signs {
    alignas(64) uint8_t flips[kSuperBlock / 8][2][32];
    alignas(64) int32_t negatives[2][8];  ///< Σ scale · Σ |w| over w < 0
  };
  struct PanelBlock : std::conditional_t<Format::kSigned, Signs, Factors> {
    alignas(64) uint8_t codes[kSuperBlock / 8][2][32];
    alignas(64) int16_t scales[kSubBlocks][2][16];
    alignas(64) float d[kPanelRows];
    float dmin[kPanelRows];
  };

  struct RowSums {
    __m256i scaled;  ///< Σ scale · Σ q·x, over the lanes
    __m256i mins;    ///< Σ min · Σ x, if the format has mins
  };

  /// The first of 16 columns that are piece 0 or 1 of register g. In order; or the first halves of
  /// two sub-blocks of 32, followed by their second halves.
  static constexpr size_t column(size_t g, size_t piece) {
    if (!Format::kTwoSubBlocks) return 32 * g + 16 * piece;
    return 32 * (g / 2 * 2 + piece) + 16 * (g % 2);
  }

  /// What the products of register g are multiplied by.
  static __m256i scales_of(__m256i scales, size_t g) {
    const size_t low = column(g, 0) / Format::kSubBlock % 8;
    const size_t high = column(g, 1) / Format::kSubBlock % 8;
    if constexpr (Format::kSubBlock == 32)
      return _mm256_shuffle_epi8(scales, word_shuffle(low, high));
    const __m256i eight = g < 4 ? _mm256_permute2x128_si256(scales, scales, 0x00)
                                : _mm256_permute2x128_si256(scales, scales, 0x11);
    return _mm256_shuffle_epi8(eight, word_shuffle(low, high));
  }

  /// Σ scale · Σ q·x of one row, over the lanes; scale_of(g) is what register g's pair sums meet.
  template <class ScaleOf>
  static __m256i scaled_sums(const std::byte* block, const int8_t* x, const ScaleOf& scale_of) {
    __m256i scaled = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (size_t g = 0; g < 8; ++g) {
      const __m256i codes = Format::codes(OneBlock{block}, g);
      const __m256i q = load32(x + 32 * g);
      const __m256i products =
          Format::kSigned ? signed_pairs(codes, q) : _mm256_maddubs_epi16(codes, q);
      scaled = _mm256_add_epi32(scaled, _mm256_madd_epi16(products, scale_of(g)));
    }
    return scaled;
  }

  static RowSums row_sums(const std::byte* block, const Activations& x) {
    const __m256i scales = Format::scales(block);
    const __m256i scaled = scaled_sums(block, x.q, [&](size_t g) { return scales_of(scales, g); });
    if constexpr (Format::kSigned)
      return {scaled, scaled};
    else
      return with_sum_weights(block, x, scaled);
  }

  static RowSums with_sum_weights(const std::byte* block, const Activations& x, __m256i scaled) {
    const __m256i mins = _mm256_madd_epi16(Format::sum_weights(block), load32(x.sum16));
    if constexpr (Format::kHasMin) return {scaled, mins};
    return {_mm256_add_epi32(scaled, mins), mins};
  }

  static __m256 d_of_each(const std::byte* const* blocks) {
    const __m256 d = half_of_each(blocks, Format::kOffsetD);
    if constexpr (requires { Format::kStep; })
      return _mm256_mul_ps(d, _mm256_set1_ps(Format::kStep));
    return d;
  }

  /// The float steps of one block for eight rows.
  static __m256 add_block(__m256 d, __m256 dmin, float a, __m256i scaled, __m256i mins,
                          __m256 acc) {
    const __m256 scale = _mm256_set1_ps(a);
    acc = _mm256_fmadd_ps(_mm256_mul_ps(d, scale), _mm256_cvtepi32_ps(scaled), acc);
    if constexpr (Format::kHasMin)
      acc = _mm256_fnmadd_ps(_mm256_mul_ps(dmin, scale), _mm256_cvtepi32_ps(mins), acc);
    return acc;
  }

  /// Puts a block's activations in the order of codes.
  static void arrange(const int8_t* from, int8_t* to) {
    for (size_t g = 0; g < 8; ++g) {
      const auto* q = reinterpret_cast<const std::byte*>(from);
      store32(to + 32 * g, load16_each(q + column(g, 0), q + column(g, 1)));
    }
  }

  static __m256 add_rows(const std::byte* const* blocks, const Activations& x, __m256 acc) {
    if constexpr (requires { typename Format::Headers; }) {
      return add_with_headers(blocks, x, acc);
    } else if constexpr (Format::kTwoSubBlocks) {
      alignas(32) int8_t q[kSuperBlock];
      arrange(x.q, q);
      return add_arranged(blocks, {q, x.sum16, x.scale}, acc);
    } else {
      return add_arranged(blocks, x, acc);
    }
  }

  /// Where a register of codes is a sub-block, and eight rows' scales and mins can be had at once.
  static __m256 add_with_headers(const std::byte* const* blocks, const Activations& x, __m256 acc) {
    const typename Format::Headers headers(blocks);
    __m256i scaled[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r)
      scaled[r] = scaled_sums(
          blocks[r], x.q, [&](size_t g) { return _mm256_set1_epi32(headers.scale_pairs[g][r]); });
    return add_block(headers.d, headers.dmin, *x.scale, sum_each(scaled), headers.sum_mins(x.sum16),
                     acc);
  }

  static __m256 add_arranged(const std::byte* const* blocks, const Activations& x, __m256 acc) {
    __m256i scaled[kPanelRows];
    __m256i mins[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r) {
      const RowSums sums = row_sums(blocks[r], x);
      scaled[r] = sums.scaled;
      mins[r] = sums.mins;
    }
    const __m256 d = d_of_each(blocks);
    if constexpr (!Format::kHasMin)
      return add_block(d, d, *x.scale, sum_each(scaled), scaled[0], acc);
    const __m256 dmin = half_of_each(blocks, Format::kOffsetD + 2);
    return add_block(d, dmin, *x.scale, sum_each(scaled), sum_each(mins), acc);
  }

  static void unpack_codes(const std::byte* const* blocks, PanelBlock& panel) {
#pragma GCC unroll 8
    for (size_t g = 0; g < 8; ++g) {
#pragma GCC unroll 2
      for (size_t piece = 0; piece < 2; ++piece) {
        __m256i pair[4];
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; ++j)
          pair[j] = Format::codes(TwoBlocks{blocks[j], blocks[j + 4], piece}, g);
        interleave(pair, panel.codes[column(g, piece) / 8][0]);
      }
    }
  }

  static void unpack_scales(const std::byte* const* blocks, PanelBlock& panel) {
    __m256i scales[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r) scales[r] = Format::scales(blocks[r]);
    for (size_t piece = 0; piece < kSubBlocks / 8; ++piece) {
      __m256i to[4];
      interleave_rows(scales, piece, to);
      for (size_t i = 0; i < 8; ++i) {
        const __m256i shuffle = fourfold_word_shuffle(i % 4);
        store32(panel.scales[8 * piece + i][0], _mm256_shuffle_epi8(to[i / 4 * 2], shuffle));
        store32(panel.scales[8 * piece + i][1], _mm256_shuffle_epi8(to[i / 4 * 2 + 1], shuffle));
      }
    }
  }

  static void unpack_sum_weights(const std::byte* const* blocks, PanelBlock& panel) {
    __m256i sum_weights[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r) sum_weights[r] = Format::sum_weights(blocks[r]);
    interleave_rows(sum_weights, 0, panel.sum_weights[0][0]);
    interleave_rows(sum_weights, 1, panel.sum_weights[2][0]);
  }

  static void unpack_signs(PanelBlock& panel) {
    for (size_t half = 0; half < 2; ++half) {
      __m256i negatives = _mm256_setzero_si256();
      for (size_t s = 0; s < kSubBlocks; ++s) {
        const __m256i pairs = split_signs(panel.codes + s * kSteps, panel.flips + s * kSteps, half);
        negatives =
            _mm256_add_epi32(negatives, _mm256_madd_epi16(pairs, load32(panel.scales[s][half])));
      }
      store32(panel.negatives[half], negatives);
    }
  }

  static void unpack(const std::byte* const* blocks, PanelBlock& panel) {
    unpack_codes(blocks, panel);
    unpack_scales(blocks, panel);
    if constexpr (Format::kSigned)
      unpack_signs(panel);
    else
      unpack_sum_weights(blocks, panel);
    _mm256_store_ps(panel.d, d_of_each(blocks));
    if constexpr (Format::kHasMin)
      _mm256_storeu_ps(panel.dmin, half_of_each(blocks, Format::kOffsetD + 2));
  }

  /// The pair sums of kScaledSteps steps from `first` on.
  template <size_t N>
  static void pair_sums(const PanelBlock& panel, size_t first, const Activations* x,
                        __m256i (*pairs)[2]) {
#pragma GCC unroll 4
    for (size_t i = 0; i < kScaledSteps; ++i) {
      const __m256i codes[2] = {load32(panel.codes[first + i][0]),
                                load32(panel.codes[first + i][1])};
      __m256i flips[2];
      if constexpr (Format::kSigned) {
        flips[0] = load32(panel.flips[first + i][0]);
        flips[1] = load32(panel.flips[first + i][1]);
      }
#pragma GCC unroll 4
      for (size_t n = 0; n < N; ++n) {
        const __m256i eight = broadcast8(x[n].q + 8 * (first + i));
#pragma GCC unroll 2
        for (size_t half = 0; half < 2; ++half) {
          const __m256i q = Format::kSigned ? _mm256_xor_si256(eight, flips[half]) : eight;
          const __m256i products = _mm256_maddubs_epi16(codes[half], q);
          pairs[n][half] = i == 0 ? products : _mm256_add_epi16(pairs[n][half], products);
          keep(pairs[n][half]);
        }
      }
    }
  }

  /// sums[n][half] += Σ scale · Σ q·x
  template <size_t N>
  static void add_products(const PanelBlock& panel, const Activations* x, __m256i (*sums)[2]) {
    for (size_t s = 0; s < kSubBlocks; ++s) {
      const __m256i scale_a = load32(panel.scales[s][0]);
      const __m256i scale_b = load32(panel.scales[s][1]);
#pragma GCC unroll 4
      for (size_t i = 0; i < kSteps; i += kScaledSteps) {
        __m256i pairs[N][2];
        pair_sums<N>(panel, s * kSteps + i, x, pairs);
#pragma GCC unroll 4
        for (size_t n = 0; n < N; ++n) {
          sums[n][0] = _mm256_add_epi32(sums[n][0], _mm256_madd_epi16(pairs[n][0], scale_a));
          sums[n][1] = _mm256_add_epi32(sums[n][1], _mm256_madd_epi16(pairs[n][1], scale_b));
        }
      }
    }
  }

  /// sums[n][half] += Σ sum_weight · sum16
  template <size_t N>
  static void add_sums(const PanelBlock& panel, const Activations* x, __m256i (*sums)[2]) {
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      const __m256i a = load32(panel.sum_weights[i][0]);
      const __m256i b = load32(panel.sum_weights[i][1]);
#pragma GCC unroll 4
      for (size_t n = 0; n < N; ++n) {
        const __m256i four = broadcast8(x[n].sum16 + 4 * i);
        sums[n][0] = _mm256_add_epi32(sums[n][0], _mm256_madd_epi16(a, four));
        sums[n][1] = _mm256_add_epi32(sums[n][1], _mm256_madd_epi16(b, four));
      }
    }
  }

  template <size_t N>
  static void add_panel(const PanelBlock& panel, const Activations* x, __m256* acc) {
    __m256i sums[N][2];
    __m256i mins[N][2];
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      sums[n][0] = sums[n][1] = mins[n][0] = mins[n][1] = _mm256_setzero_si256();
      if constexpr (Format::kSigned) {
        sums[n][0] = load32(panel.negatives[0]);
        sums[n][1] = load32(panel.negatives[1]);
      }
    }
    add_products<N>(panel, x, sums);
    if constexpr (!Format::kSigned) add_sums<N>(panel, x, Format::kHasMin ? mins : sums);
    const __m256 d = _mm256_load_ps(panel.d);
    const __m256 dmin = Format::kHasMin ? _mm256_loadu_ps(panel.dmin) : d;
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n)
      acc[n] = add_block(d, dmin, *x[n].scale, add_pairs(sums[n][0], sums[n][1]),
                         add_pairs(mins[n][0], mins[n][1]), acc[n]);
  }
};

}  // namespace
}  // namespace sluice::kernels::avx2

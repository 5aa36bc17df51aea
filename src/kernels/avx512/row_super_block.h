// Rows of the formats in super-blocks, for one token (row_matvec.h).
//
// A row's 256 weights are four registers of codes. vpdpbusd sums each four columns; if the sums fit
// an int16, two registers are packed into one, and vpdpwssd multiplies by the sub-blocks' scales
// and sums on. What codes are above the true weight comes off where the sums of four start.
//
// A format is a struct with
//   Panels                        its family for several tokens
//   kSubColumns (16, 32 or, where there are no scales, 256), kOffset, kHasMin
//   kWide                         sums of four do not fit an int16; two registers have the same
//                                 scales
//   column(k, quarter)            where the 16 columns of each quarter of register k begin
//   codes(block, codes)           the four registers
//   scales(blocks, sums, scales)  what else four rows' blocks hold; Σ min · Σ x, in the four lanes
//                                 of a row's quarter, if there are mins
#pragma once

#include "kernels/avx512/fold.h"
#include "kernels/avx512/row_matvec.h"
#include "kernels/avx512/super_block.h"

namespace sluice::kernels::avx512 {
namespace {

/// The scales of four rows of a super-block.
template <size_t kSubBlocks>
struct QuadScales {
  __m512i scale[(kSubBlocks + 7) / 8];  ///< int16, [row][sub-block]
  __m512i mins;  ///< lane 4 · row and the next three: parts of Σ min · Σ x
  __m128 d;
  __m128 dmin;
};

/// The activations of a block, as its codes are laid out.
struct BlockActivations {
  __m512i q[4];
  __m512i start[4];  ///< where sums begin: −offset · Σ x of each four, or eight
};

template <class Format>
class RowSuperBlocks {
 public:
  using Panels = typename Format::Panels;
  static constexpr size_t kBlockBytes = Panels::kBlockBytes;
  static constexpr size_t kSubBlocks = kSuperBlock / Format::kSubColumns;
  static constexpr size_t kSum16 = Format::kSubColumns / 16;  ///< sums of 16 in a sub-block

  explicit RowSuperBlocks(const MatmulArgs& args)
      : block_count_(args.cols / kSuperBlock), token_(TokenRows<kSuperBlock>(args).at(0, 0)) {
    for (size_t row = 0; row < kQuadRows; ++row)
      for (size_t pair = 0; pair < 2; ++pair) make_spread(row, pair, spread_[row][pair]);
    for (size_t b = 0; b < block_count_; ++b) prepare(b);
  }

  size_t row_bytes() const { return block_count_ * kBlockBytes; }

  inline __m128 multiply(const Quad& rows, Ahead& ahead) const {
    __m128 acc = _mm_setzero_ps();
    for (size_t b = 0; b < block_count_; ++b) {
      Quad blocks;
      for (size_t i = 0; i < kQuadRows; ++i) blocks.row[i] = rows.row[i] + b * kBlockBytes;
      ahead.template advance<kQuadRows * kBlockBytes / 64>();
      acc = add_block(blocks, b, acc);
    }
    return acc;
  }

 private:
  inline __m128 add_block(const Quad& blocks, size_t b, __m128 acc) const {
    BlockActivations x;
    for (size_t k = 0; k < 4; ++k) {
      x.q[k] = _mm512_load_si512(q_[b][k]);
      if constexpr (kSumsOf8)
        x.start[k] = start_[b][k / 2];
      else if constexpr (Format::kOffset != 0)
        x.start[k] = negative_sums(_mm512_setzero_si512(), x.q[k], Format::kOffset);
      else
        x.start[k] = _mm512_setzero_si512();
    }
    QuadScales<kSubBlocks> scales;
    Format::scales(blocks, sums_[b], scales);
    __m512i totals[kQuadRows];
    for (size_t i = 0; i < kQuadRows; ++i) totals[i] = row_total(blocks.row[i], x, scales, i);
    const __m128i total = add_quarters(fold_four(totals[0], totals[1], totals[2], totals[3]));
    const __m128 a = _mm_set1_ps(token_.scale[b]);
    acc = _mm_fmadd_ps(_mm_mul_ps(scales.d, a), _mm_cvtepi32_ps(total), acc);
    if constexpr (Format::kHasMin)
      acc = _mm_fnmadd_ps(_mm_mul_ps(scales.dmin, a), _mm_cvtepi32_ps(add_in_quarters(scales.mins)),
                          acc);
    return acc;
  }

  /// Lays a block's activations out as its registers of codes are.
  void prepare(size_t b) {
    for (size_t k = 0; k < 4; ++k) {
      for (size_t quarter = 0; quarter < 4; ++quarter)
        std::memcpy(q_[b][k] + 16 * quarter,
                    token_.q + b * kSuperBlock + Format::column(k, quarter), 16);
    }
    if constexpr (kSumsOf8) {
      for (size_t pair = 0; pair < 2; ++pair) {
        const __m512i first = negative_sums(_mm512_setzero_si512(),
                                            _mm512_load_si512(q_[b][2 * pair]), Format::kOffset);
        start_[b][pair] =
            negative_sums(first, _mm512_load_si512(q_[b][2 * pair + 1]), Format::kOffset);
      }
    }
    for (size_t i = 0; i < 16; ++i) sums_[b][i / kSum16] = 0;
    for (size_t i = 0; i < 16; ++i)
      sums_[b][i / kSum16] = static_cast<int16_t>(sums_[b][i / kSum16] + token_.sum16[16 * b + i]);
  }

  /// A shuffle that brings a row's scales to its sums of four. Packed sums of two registers: each
  /// quarter has four of the one's, then of the other's. Wide ones: a sum is two int16, of which
  /// the second gets the scale's sign, 32 further on.
  static inline void make_spread(size_t row, size_t pair, int16_t* order) {
    for (size_t i = 0; i < 32; ++i) {
      const size_t k = 2 * pair + (Format::kWide ? 0 : i / 4 % 2);
      const size_t scale = Format::column(k, i / 8) / Format::kSubColumns;
      const size_t at = (row * kSubBlocks + scale) % 32 + (Format::kWide ? i % 2 * 32 : 0);
      order[i] = static_cast<int16_t>(at);
    }
  }

  inline __m512i row_total(const std::byte* block, const BlockActivations& x,
                           const QuadScales<kSubBlocks>& scales, size_t row) const {
    __m512i codes[4];
    Format::codes(block, codes);
    const auto sums_of_4 = [&](size_t k) {
      return _mm512_dpbusd_epi32(x.start[k], codes[k], x.q[k]);
    };
    const auto sums_of_8 = [&](size_t pair) {
      return _mm512_dpbusd_epi32(sums_of_4(2 * pair), codes[2 * pair + 1], x.q[2 * pair + 1]);
    };
    if constexpr (kSubBlocks == 1) {
      return _mm512_add_epi32(sums_of_8(0), sums_of_8(1));
    } else if constexpr (Format::kWide) {
      const __m512i signs = _mm512_srai_epi16(scales.scale[0], 15);
      const auto scaled = [&](size_t pair) {
        const __m512i order = _mm512_load_si512(spread_[row][pair]);
        const __m512i scale = _mm512_permutex2var_epi16(scales.scale[0], order, signs);
        return _mm512_mullo_epi32(sums_of_8(pair), scale);
      };
      return _mm512_add_epi32(scaled(0), scaled(1));
    } else {
      const auto packed = [&](size_t pair) {
        return _mm512_packs_epi32(sums_of_4(2 * pair), sums_of_4(2 * pair + 1));
      };
      const auto scale = [&](size_t pair) {
        return _mm512_permutexvar_epi16(_mm512_load_si512(spread_[row][pair]),
                                        scales.scale[row * kSubBlocks / 32]);
      };
      return _mm512_dpwssd_epi32(_mm512_madd_epi16(packed(0), scale(0)), packed(1), scale(1));
    }
  }

  static constexpr bool kSumsOf8 = Format::kWide || kSubBlocks == 1;
  /// Only for these: prepared starts for all four registers crowd the first-level cache, which took
  /// Q6_K from 29 to 20 GB/s (one core of an EPYC Genoa, 2026).
  static constexpr size_t kPreparedStarts = kSumsOf8 ? kColumnsMax / kSuperBlock : 1;

  size_t block_count_;
  Token token_;
  alignas(64) int16_t spread_[kQuadRows][2][32];
  alignas(64) int8_t q_[kColumnsMax / kSuperBlock][4][64];
  __m512i start_[kPreparedStarts][2];
  alignas(32) int16_t sums_[kColumnsMax / kSuperBlock][16 / kSum16];  ///< Σ x of sub-blocks
};

}  // namespace
}  // namespace sluice::kernels::avx512

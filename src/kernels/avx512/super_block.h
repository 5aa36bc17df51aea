// The formats in super-blocks of 256 columns, whose sub-blocks of 16 or 32 carry integer scales.
//
// A format is a struct, made anew for each super-block, with
//   kBlockBytes, kSubColumns (16 or 32), kOffset (see panel.h), kHasMin
//   half_column(run, half)            where each half of a run's columns begins
//   unpack_run(blocks, run, groups)   64 columns of weights, runs in ascending order
//   unpack_scales(blocks, scales)     everything else, called after the first run: where scales
//                                     lie behind the weights, reading them first costs a fifth
//
// Tried and dropped: leaving the upper half of Q4_K's bytes where it is (16 q, with the other
// scales times 16) saves a shift per register, and gained three percent with one token, none with
// many.
#pragma once

#include "kernels/avx512/panel_matmul.h"
#include "quant/blocks.h"

namespace sluice::kernels::avx512 {
namespace {

/// For formats whose runs are columns in ascending order.
struct AscendingRuns {
  static constexpr size_t half_column(size_t run, size_t half) { return 64 * run + 32 * half; }
};

/// The scales of a panel's super-block; the last index is the row.
struct alignas(64) SuperScales {
  int32_t scale[16][kPanelRows];  ///< [sub-block]
  int32_t min[8][kPanelRows];     ///< two int16 each, in the order of TokenSums::pair
  __m512 d;
  __m512 dmin;
};

template <class Format>
struct SuperBlocks {
  static constexpr size_t kBlockColumns = kSuperBlock;
  static constexpr size_t kBlockBytes = Format::kBlockBytes;

  static inline void multiply(const PanelBlocks& blocks, size_t, Chunk& chunk) {
    for (size_t t = 0; t < chunk.count; ++t) {
      prepare_sums(chunk.tokens[t], chunk.sums[t]);
      chunk.totals[t] = _mm512_setzero_si512();
    }
    SuperScales scales;
    Format format;
#pragma GCC unroll 4
    for (size_t r = 0; r < kSuperBlock / kRunColumns; ++r) {
      Run run;
      format.unpack_run(blocks, r, run);
      if (r == 0) format.unpack_scales(blocks, scales);
      for (size_t t = 0; t < chunk.count; ++t)
        add_run(run, r, scales, chunk.tokens[t], chunk.sums[t], chunk.totals[t]);
    }
    for (size_t t = 0; t < chunk.count; ++t)
      add_block(scales, *chunk.tokens[t].scale, chunk.sums[t], chunk.totals[t], chunk.acc[t]);
  }

 private:
  /// Σ x of each sub-block, as int16; 16 or 8 of them.
  static inline __m256i sub_block_sums(const Token& token) {
    const __m256i sum16 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(token.sum16));
    if constexpr (Format::kSubColumns == 16) return sum16;
    const __m256i sum32 = _mm256_madd_epi16(sum16, _mm256_set1_epi16(1));
    return _mm256_castsi128_si256(_mm256_cvtepi32_epi16(sum32));
  }

  static inline void prepare_sums(const Token& token, TokenSums& sums) {
    const __m256i x = sub_block_sums(token);
    if constexpr (Format::kOffset != 0) {
      const __m512i offset = _mm512_set1_epi32(-Format::kOffset);
      _mm512_store_si512(sums.start, _mm512_mullo_epi32(_mm512_cvtepi16_epi32(x), offset));
    }
    if constexpr (Format::kHasMin) {  // in the order 0 2, 1 3, 4 6, 5 7, …
      const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
      _mm256_store_si256(reinterpret_cast<__m256i*>(sums.pair),
                         _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(order)));
    }
    static_assert((Format::kOffset == 0) == Format::kHasMin, "TokenSums has room for one of them");
  }

  static inline void add_run(const Run& run, size_t index, const SuperScales& scales,
                             const Token& token, const TokenSums& token_sums, __m512i& total) {
    constexpr size_t kSums = kRunColumns / Format::kSubColumns;
    const size_t columns[2] = {Format::half_column(index, 0), Format::half_column(index, 1)};
    const auto sub_block = [&](size_t s) {
      return columns[2 * s / kSums] / Format::kSubColumns + s % (kSums / 2);
    };
    __m512i sums[kSums];
    for (size_t s = 0; s < kSums; ++s)
      sums[s] = Format::kOffset == 0 ? _mm512_setzero_si512()
                                     : _mm512_set1_epi32(token_sums.start[sub_block(s)]);
    multiply_run(run, {token.q + columns[0], token.q + columns[1]}, sums);
    for (size_t s = 0; s < kSums; ++s) {
      const __m512i scale = _mm512_load_si512(scales.scale[sub_block(s)]);
      total = _mm512_add_epi32(total, _mm512_mullo_epi32(sums[s], scale));
    }
  }

  /// The float step of kernels.h.
  static inline void add_block(const SuperScales& scales, float token_scale, const TokenSums& sums,
                               __m512i total, __m512& acc) {
    const __m512 a = _mm512_set1_ps(token_scale);
    acc = _mm512_fmadd_ps(_mm512_mul_ps(scales.d, a), _mm512_cvtepi32_ps(total), acc);
    if constexpr (Format::kHasMin) {
      __m512i mins = _mm512_setzero_si512();
      for (size_t i = 0; i < kSuperBlock / Format::kSubColumns / 2; ++i)
        mins = _mm512_dpwssd_epi32(mins, _mm512_load_si512(scales.min[i]),
                                   _mm512_set1_epi32(sums.pair[i]));
      acc = _mm512_fnmadd_ps(_mm512_mul_ps(scales.dmin, a), _mm512_cvtepi32_ps(mins), acc);
    }
  }
};

}  // namespace
}  // namespace sluice::kernels::avx512

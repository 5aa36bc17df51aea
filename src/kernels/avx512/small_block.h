// The formats in small blocks: one float scale per 32 columns or per 16, no integer scales below
// it. A run is 64 columns, a stretch 256 (fewer at the end of a row).
//
// A format is a struct, made anew for each stretch, with
//   kBlockColumns, kBlockBytes, kOffset (see panel.h)
//   kScaleColumns                  columns per scale, 16 or 32
//   kHasMin                        a binary16 m, two bytes into a block of 32, is added to each
//                                  weight; kOffset is 0 then
//   unpack_run(blocks, run, to)    the weights of the stretch's columns from 64·run on, runs in
//                                  ascending order
//   load_scales(blocks, run, d)    their floats d
#pragma once

#include "kernels/avx512/panel_matmul.h"
#include "kernels/avx512/small_codes.h"
#include "quant/blocks.h"

namespace sluice::kernels::avx512 {
namespace {

/// What most of them are: a block begins with its one d, a binary16, perhaps followed by m.
template <class OneBlock, size_t kColumns = kSmallBlock>
struct HalfScaled {
  using Block = OneBlock;
  static_assert(offsetof(Block, d) == 0);
  static constexpr size_t kBlockColumns = kColumns;
  static constexpr size_t kBlockBytes = sizeof(Block);
  static constexpr size_t kScaleColumns = kSmallBlock;
  static constexpr bool kHasMin = requires(Block block) { block.m; };

  static inline void load_scales(const PanelBlocks& blocks, size_t run, __m512 (&d)[2]) {
    const size_t block = run * kRunColumns / kBlockColumns;
    d[0] = load_f16(blocks, block * kBlockBytes);
    d[1] = kBlockColumns == kSmallBlock ? load_f16(blocks, (block + 1) * kBlockBytes) : d[0];
  }
};

/// Those whose codes are half bytes.
template <class OneBlock>
struct FourBits : HalfScaled<OneBlock> {
  static inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQs = offsetof(OneBlock, qs);
    for (size_t b = 0; b < 2; ++b)
      load_half_bytes(blocks, (2 * index + b) * sizeof(OneBlock) + kQs, run + 8 * b);
  }
};

/// Those with a fifth bit beside.
template <class OneBlock>
struct FiveBits : HalfScaled<OneBlock> {
  static inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQh = offsetof(OneBlock, qh);
    constexpr size_t kQs = offsetof(OneBlock, qs);
    for (size_t b = 0; b < 2; ++b) {
      const size_t block = (2 * index + b) * sizeof(OneBlock);
      load_half_bytes(blocks, block + kQs, run + 8 * b);
      __m512i fifths[8];
      spread_bits(load_dword(blocks, block + kQh), 4, fifths);
      for (size_t i = 0; i < 8; ++i) run[8 * b + i] = _mm512_or_si512(run[8 * b + i], fifths[i]);
    }
  }
};

template <class Format>
struct SmallBlocks {
  static constexpr size_t kBlockColumns = Format::kBlockColumns;
  static constexpr size_t kBlockBytes = Format::kBlockBytes;
  static_assert(!Format::kHasMin || (kBlockColumns == kSmallBlock && Format::kOffset == 0));

  static inline void multiply(const PanelBlocks& blocks, size_t columns, Chunk& chunk) {
    for (size_t t = 0; t < chunk.count; ++t) prepare_sums(chunk.tokens[t], columns, chunk.sums[t]);
    Format format;
    for (size_t r = 0; r * kRunColumns < columns; ++r) {
      Scales scales;
      Format::load_scales(blocks, r, scales.d);
      if constexpr (Format::kHasMin)
        for (size_t i = 0; i < 2; ++i)
          scales.m[i] = load_f16(blocks, (2 * r + i) * kBlockBytes + 2);
      Run run;
      format.unpack_run(blocks, r, run);
      if ((r + 1) * kRunColumns <= columns)
        add_run<kSums>(run, r, scales, chunk);
      else
        add_run<kSums / 2>(run, r, scales, chunk);
    }
  }

 private:
  static constexpr size_t kSums = kRunColumns / Format::kScaleColumns;
  static constexpr size_t kBlockScales = kSmallBlock / Format::kScaleColumns;

  struct Scales {
    __m512 d[kSums];
    __m512 m[2];
  };

  /// Σx of what belongs to a scale, times −offset, or as it is for the format's min. Activations
  /// are padded to 64 columns, not to a stretch.
  static inline void prepare_sums(const Token& token, size_t columns, TokenSums& sums) {
    const auto lanes = static_cast<__mmask16>((1u << columns / 16) - 1);
    const __m256i sum16 = _mm256_maskz_loadu_epi16(lanes, token.sum16);
    const __m512i offset = _mm512_set1_epi32(-Format::kOffset);
    if constexpr (Format::kScaleColumns == 16) {
      _mm512_store_si512(sums.start, _mm512_mullo_epi32(_mm512_cvtepi16_epi32(sum16), offset));
      return;
    }
    const __m256i sum32 = _mm256_madd_epi16(sum16, _mm256_set1_epi16(1));
    if constexpr (Format::kHasMin)
      _mm256_store_ps(sums.columns, _mm256_cvtepi32_ps(sum32));
    else
      _mm256_store_si256(reinterpret_cast<__m256i*>(sums.start),
                         _mm256_mullo_epi32(sum32, _mm512_castsi512_si256(offset)));
  }

  /// Of the run's scales only the first kUsed have columns in the row.
  template <size_t kUsed>
  static inline void add_run(const Run& run, size_t index, const Scales& scales, Chunk& chunk) {
    for (size_t t = 0; t < chunk.count; ++t) {
      const Token& token = chunk.tokens[t];
      const int8_t* q = token.q + index * kRunColumns;
      __m512i sums[kSums];
      for (size_t i = 0; i < kSums; ++i)
        sums[i] = Format::kOffset == 0 ? _mm512_setzero_si512()
                                       : _mm512_set1_epi32(chunk.sums[t].start[index * kSums + i]);
      multiply_run(run, {q, q + kRunColumns / 2}, sums);
      for (size_t i = 0; i < kUsed; ++i) {
        const __m512 a = _mm512_set1_ps(token.scale[2 * index + i / kBlockScales]);
        chunk.acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(scales.d[i], a), _mm512_cvtepi32_ps(sums[i]),
                                       chunk.acc[t]);
        if constexpr (Format::kHasMin)
          chunk.acc[t] =
              _mm512_fmadd_ps(_mm512_mul_ps(scales.m[i], a),
                              _mm512_set1_ps(chunk.sums[t].columns[2 * index + i]), chunk.acc[t]);
      }
    }
  }
};

}  // namespace
}  // namespace sluice::kernels::avx512

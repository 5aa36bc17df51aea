// The formats in blocks of 32 columns with one scale and no integer scales below it. A run is two
// blocks, a stretch eight (fewer at the end of a row).
//
// A format is a struct with
//   kBlockBytes, kOffset (see panel.h); the block begins with d, a binary16
//   unpack_run(blocks, run, groups)   the weights of the stretch's blocks 2·run and 2·run + 1
#pragma once

#include "kernels/avx512/panel_matmul.h"

namespace sluice::kernels::avx512 {
namespace {

template <class Format>
struct SmallBlocks {
  static constexpr size_t kBlockColumns = kSmallBlock;
  static constexpr size_t kBlockBytes = Format::kBlockBytes;

  static inline void multiply(const PanelBlocks& blocks, size_t columns, Chunk& chunk) {
    for (size_t t = 0; t < chunk.count; ++t) prepare_sums(chunk.tokens[t], columns, chunk.sums[t]);
    for (size_t b = 0; b < columns / kSmallBlock; b += 2) {
      const __m512 d[2] = {load_f16(blocks, b * kBlockBytes),
                           load_f16(blocks, (b + 1) * kBlockBytes)};
      Run run;
      Format::unpack_run(blocks, b / 2, run);
      if ((b + 1) * kSmallBlock < columns)
        add_run<2>(run, b, d, chunk);
      else
        add_run<1>(run, b, d, chunk);
    }
  }

 private:
  /// Σx of each block times −offset. Activations are padded to 64 columns, not to a stretch.
  static inline void prepare_sums(const Token& token, size_t columns, TokenSums& sums) {
    const auto lanes = static_cast<__mmask16>((1u << columns / 16) - 1);
    const __m256i sum16 = _mm256_maskz_loadu_epi16(lanes, token.sum16);
    const __m256i sum32 = _mm256_madd_epi16(sum16, _mm256_set1_epi16(1));
    _mm256_store_si256(reinterpret_cast<__m256i*>(sums.start),
                       _mm256_mullo_epi32(sum32, _mm256_set1_epi32(-Format::kOffset)));
  }

  template <size_t kBlocks>
  static inline void add_run(const Run& run, size_t block, const __m512 (&d)[2], Chunk& chunk) {
    for (size_t t = 0; t < chunk.count; ++t) {
      const Token& token = chunk.tokens[t];
      const int8_t* q = token.q + block * kSmallBlock;
      __m512i sums[2] = {_mm512_set1_epi32(chunk.sums[t].start[block]),
                         _mm512_set1_epi32(chunk.sums[t].start[block + 1])};
      multiply_run(run, {q, q + kSmallBlock}, sums);
      for (size_t i = 0; i < kBlocks; ++i) {
        const __m512 scale = _mm512_mul_ps(d[i], _mm512_set1_ps(token.scale[block + i]));
        chunk.acc[t] = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(sums[i]), chunk.acc[t]);
      }
    }
  }
};

}  // namespace
}  // namespace sluice::kernels::avx512

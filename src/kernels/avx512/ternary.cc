// TQ1_0 and TQ2_0: one scale and one sum for 256 columns. Codes are the weights plus 1.
//
// A format is a struct, made anew for each super-block, with
//   kBlockBytes, kD                  where d lies
//   unpack_run(blocks, index, run)   columns 64·index …; runs in ascending order
#include "kernels/avx512/avx512.h"
#include "kernels/avx512/panel_matmul.h"
#include "kernels/avx512/two_bits.h"
#include "quant/blocks.h"

namespace sluice::kernels::avx512 {
namespace {

template <class Format>
struct TernaryBlocks {
  static constexpr size_t kBlockColumns = kSuperBlock;
  static constexpr size_t kBlockBytes = Format::kBlockBytes;

  static inline void multiply(const PanelBlocks& blocks, size_t, Chunk& chunk) {
    for (size_t t = 0; t < chunk.count; ++t)
      chunk.totals[t] = _mm512_set1_epi32(-sum(chunk.tokens[t]));
    Format format;
#pragma GCC unroll 4
    for (size_t r = 0; r < kSuperBlock / kRunColumns; ++r) {
      Run run;
      format.unpack_run(blocks, r, run);
      for (size_t t = 0; t < chunk.count; ++t) {
        const int8_t* q = chunk.tokens[t].q + r * kRunColumns;
        __m512i sums[2] = {chunk.totals[t], _mm512_setzero_si512()};
        multiply_run(run, {q, q + kRunColumns / 2}, sums);
        chunk.totals[t] = _mm512_add_epi32(sums[0], sums[1]);
      }
    }
    const __m512 d = load_f16(blocks, Format::kD);
    for (size_t t = 0; t < chunk.count; ++t) {
      const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(*chunk.tokens[t].scale));
      chunk.acc[t] = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(chunk.totals[t]), chunk.acc[t]);
    }
  }

 private:
  /// Σ x of the block.
  static inline int32_t sum(const Token& token) {
    const __m256i sum16 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(token.sum16));
    return _mm512_reduce_add_epi32(_mm512_cvtepi16_epi32(sum16));
  }
};

struct TQ20 {
  static constexpr size_t kBlockBytes = sizeof(BlockTQ2_0);
  static constexpr size_t kD = offsetof(BlockTQ2_0, d);

  inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    codes.unpack_run(blocks, 0, index, run);
  }

  TwoBits codes;
};

/// A byte is a fraction of base 3. Multiplied by a power of 3, with what is above one falling off,
/// it has another digit in front (quant/blocks.h).
struct TQ10 {
  static constexpr size_t kBlockBytes = sizeof(BlockTQ1_0);
  static constexpr size_t kD = offsetof(BlockTQ1_0, d);

  /// Puts the front digits of `count` registers in `run`, and the next ones in front.
  static inline void take_digits(__m512i* bytes, size_t count, __m512i* run) {
    const __m512i three = _mm512_set1_epi16(3);
    for (size_t i = 0; i < count; ++i) {
      // In the upper half of a word a byte is itself such a fraction: the word times 3, without
      // the fraction, is the digit.
      const __m512i even = _mm512_slli_epi16(bytes[i], 8);
      const __m512i odd = _mm512_andnot_si512(_mm512_set1_epi16(0xff), bytes[i]);
      run[i] = _mm512_or_si512(_mm512_mulhi_epu16(even, three),
                               _mm512_slli_epi16(_mm512_mulhi_epu16(odd, three), 8));
      bytes[i] = _mm512_add_epi8(_mm512_add_epi8(bytes[i], bytes[i]), bytes[i]);
    }
  }

  inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    if (index == 0) load(blocks);
    take_32_columns(2 * index, run);
    take_32_columns(2 * index + 1, run + 8);
  }

 private:
  inline void load(const PanelBlocks& blocks) {
    load_dwords(blocks, 0, first);
    load_dwords(blocks, 16, first + 4);
    load_dwords(blocks, 32, second);
    __m512i with_qh[4];
    load_dwords(blocks, 36, with_qh);
    qh = with_qh[3];
  }

  inline void take_32_columns(size_t index, __m512i* run) {
    if (index < 5) return take_digits(first, 8, run);
    take_digits(second, 4, run);
    if (index < 7) return take_digits(second, 4, run + 4);
    for (size_t digit = 0; digit < 4; ++digit) take_digits(&qh, 1, run + 4 + digit);
  }

  __m512i first[8];   ///< five digits of each of 32 columns
  __m512i second[4];  ///< five of each of 16
  __m512i qh;         ///< four of each of 4
};

/// What their rows share: one d, no other scales (row_super_block.h).
template <class Format>
struct TernaryRows {
  using Panels = TernaryBlocks<Format>;
  static constexpr size_t kSubColumns = kSuperBlock;
  static constexpr int kOffset = 1;
  static constexpr bool kHasMin = false;
  static constexpr bool kWide = false;

  static inline void scales(const Quad& blocks, const int16_t*, QuadScales<1>& scales) {
    scales.d = blocks.load_f16_each(Format::kD);
  }
};

struct TQ20Rows : TernaryRows<TQ20>, RowTwoBits {
  static inline void codes(const std::byte* block, __m512i (&codes)[4]) { take(block, codes); }
};

}  // namespace

void matmul_tq1_0(const MatmulArgs& args) {
  multiply_panels<TernaryBlocks<TQ10>>(args);
}
void matvec_tq2_0(const MatmulArgs& args) {
  multiply_rows<RowSuperBlocks<TQ20Rows>>(args);
}
void matmul_tq2_0(const MatmulArgs& args) {
  multiply_panels<TernaryBlocks<TQ20>>(args);
}

}  // namespace sluice::kernels::avx512

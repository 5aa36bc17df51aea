// TQ1_0 and TQ2_0: one scale and one sum for 256 columns. Codes are the weights plus 1, so Σ x
// comes off each sum. They are so small that the pair sums of a whole row of a block fit an int16.
//
// A format is a struct with
//   Block
//   codes(block, codes)   all codes (0 … 3), in eight registers
#include "kernels/avx2/avx2.h"
#include "kernels/avx2/panel_matmul.h"
#include "kernels/avx2/sources.h"
#include "quant/blocks.h"

namespace sluice::kernels::avx2 {
namespace {

template <class Format>
struct TernaryBlocks {
  using Block = typename Format::Block;
  static constexpr size_t kElements = kSuperBlock;
  static constexpr size_t kBlockBytes = sizeof(Block);
  static constexpr size_t kChunk = 8;
  static constexpr size_t kSteps = kSuperBlock / 8;
  static_assert(kSteps * 3 * 127 * 2 < 1 << 15);

  struct PanelBlock {
    alignas(64) uint8_t codes[kSteps][2][32];  ///< [8 columns][half A, B][4 rows]
    alignas(64) float d[kPanelRows];
  };

  static int32_t sum(const Activations& x) {
    const __m256i pairs = widen_pairs(load32(x.sum16));
    const __m128i four =
        _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_srli_epi64(two, 32)));
  }

  static __m256 add_block(__m256 d, const Activations& x, __m256i sums, __m256 acc) {
    const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(*x.scale));
    const __m256i excess = _mm256_set1_epi32(sum(x));
    return _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(_mm256_sub_epi32(sums, excess)), acc);
  }

  static __m256 add_rows(const std::byte* const* blocks, const Activations& x, __m256 acc) {
    __m256i sums[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r) {
      __m256i codes[8];
      Format::codes(blocks[r], codes);
      __m256i pairs = _mm256_setzero_si256();
#pragma GCC unroll 8
      for (size_t g = 0; g < 8; ++g)
        pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(codes[g], load32(x.q + 32 * g)));
      sums[r] = widen_pairs(pairs);
    }
    return add_block(half_of_each(blocks, offsetof(Block, d)), x, sum_each(sums), acc);
  }

  static void unpack(const std::byte* const* blocks, PanelBlock& panel) {
    __m256i codes[8][kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r) {
      __m256i row[8];
      Format::codes(blocks[r], row);
#pragma GCC unroll 8
      for (size_t g = 0; g < 8; ++g) codes[g][r] = row[g];
    }
    for (size_t g = 0; g < 8; ++g) {
      interleave_rows(codes[g], 0, panel.codes[4 * g][0]);
      interleave_rows(codes[g], 1, panel.codes[4 * g + 2][0]);
    }
    _mm256_store_ps(panel.d, half_of_each(blocks, offsetof(Block, d)));
  }

  template <size_t N>
  static void add_panel(const PanelBlock& panel, const Activations* x, __m256* acc) {
    __m256i a[N];
    __m256i b[N];
    sum_codes<kSteps, N>(panel.codes, 0, x, a);
    sum_codes<kSteps, N>(panel.codes, 1, x, b);
    const __m256 d = _mm256_load_ps(panel.d);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) acc[n] = add_block(d, x[n], add_pairs(a[n], b[n]), acc[n]);
  }
};

struct TQ20 {
  using Block = BlockTQ2_0;

  static void codes(const std::byte* block, __m256i* codes) {
#pragma GCC unroll 8
    for (size_t g = 0; g < 8; ++g) codes[g] = two_bits(OneBlock{block}, offsetof(Block, qs), g);
  }
};

/// A byte is a fraction of base 3. Multiplied by a power of 3, with what is above one falling off,
/// it has another digit in front (quant/blocks.h).
struct TQ10 {
  using Block = BlockTQ1_0;

  /// The front digits of bytes · powers. In the upper half of a word a byte is itself such a
  /// fraction: the word times 3, without the fraction, is the digit.
  static __m256i digits(__m256i bytes, __m256i powers) {
    const __m256i three = _mm256_set1_epi16(3);
    const __m256i even = _mm256_mullo_epi16(_mm256_slli_epi16(bytes, 8), powers);
    const __m256i odd =
        _mm256_mullo_epi16(_mm256_andnot_si256(_mm256_set1_epi16(0xff), bytes), powers);
    return _mm256_or_si256(_mm256_mulhi_epu16(even, three),
                           _mm256_slli_epi16(_mm256_mulhi_epu16(odd, three), 8));
  }

  static __m256i two_powers(short low, short high) {
    return _mm256_setr_m128i(_mm_set1_epi16(low), _mm_set1_epi16(high));
  }

  static void codes(const std::byte* block, __m256i* codes) {
    const __m256i bytes = load32(block + offsetof(Block, qs));
    codes[0] = digits(bytes, _mm256_set1_epi16(1));
    codes[1] = digits(bytes, _mm256_set1_epi16(3));
    codes[2] = digits(bytes, _mm256_set1_epi16(9));
    codes[3] = digits(bytes, _mm256_set1_epi16(27));
    codes[4] = digits(bytes, _mm256_set1_epi16(81));
    const __m128i rest = load16(block + offsetof(Block, qs) + 32);
    codes[5] = digits(_mm256_broadcastsi128_si256(rest), two_powers(1, 3));
    codes[6] = digits(_mm256_broadcastsi128_si256(rest), two_powers(9, 27));
    const __m128i last = _mm_set1_epi32(load_integer<int32_t>(block + offsetof(Block, qh)));
    const __m128i last_powers = _mm_setr_epi16(1, 1, 3, 3, 9, 9, 27, 27);
    codes[7] =
        digits(_mm256_setr_m128i(rest, last), _mm256_setr_m128i(_mm_set1_epi16(81), last_powers));
  }
};

}  // namespace

void matvec_tq1_0(const MatmulArgs& args) {
  matvec<TernaryBlocks<TQ10>>(args);
}
void matmul_tq1_0(const MatmulArgs& args) {
  matmul<TernaryBlocks<TQ10>>(args);
}
void matvec_tq2_0(const MatmulArgs& args) {
  matvec<TernaryBlocks<TQ20>>(args);
}
void matmul_tq2_0(const MatmulArgs& args) {
  matmul<TernaryBlocks<TQ20>>(args);
}

}  // namespace sluice::kernels::avx2

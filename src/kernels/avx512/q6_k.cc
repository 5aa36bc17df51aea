#include "kernels/avx512/avx512.h"
#include "kernels/avx512/row_super_block.h"
#include "kernels/avx512/spread.h"
#include "kernels/avx512/super_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q6K {
  static constexpr size_t kBlockBytes = sizeof(BlockQ6_K);
  static constexpr size_t kSubColumns = 16;
  static constexpr int kOffset = 32;
  static constexpr bool kHasMin = false;

  /// Runs 0 and 1 are columns 0 … 31 and 64 … 95, 32 … 63 and 96 … 127: those that share bytes.
  static constexpr size_t half_column(size_t run, size_t half) {
    return 128 * (run / 2) + 32 * (run % 2) + 64 * half;
  }

  inline void unpack_scales(const PanelBlocks& blocks, SuperScales& scales) {
    constexpr size_t kScales = offsetof(BlockQ6_K, scales);
    constexpr size_t kD = offsetof(BlockQ6_K, d);
    __m512i bytes[4];
    load_dwords(blocks, kScales, bytes);
    for (size_t i = 0; i < 4; ++i) spread_signed_bytes(bytes[i], scales.scale + 4 * i);
    scales.d = load_f16(blocks, kD);
  }

  inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQh = offsetof(BlockQ6_K, qh);
    __m512i packed[8];
    load_dwords(blocks, 32 * index, packed);
    load_dwords(blocks, 32 * index + 16, packed + 4);
    if (index % 2 == 0) {
      load_dwords(blocks, kQh + 16 * index, upper);
      load_dwords(blocks, kQh + 16 * index + 16, upper + 4);
    }
    const __m512i low_half = _mm512_set1_epi8(0x0f);
    const __m512i bits_4_5 = _mm512_set1_epi8(0x30);
    const int shift = 2 * static_cast<int>(index % 2);
    for (size_t i = 0; i < 8; ++i) {
      const __m512i low = _mm512_and_si512(packed[i], low_half);
      const __m512i high = _mm512_and_si512(_mm512_srli_epi32(packed[i], 4), low_half);
      // Bits 2·(index % 2) and the next of each byte belong to the first half; four on, the other.
      const __m512i for_high = _mm512_srlv_epi32(upper[i], _mm512_set1_epi32(shift));
      const __m512i for_low = _mm512_slli_epi32(for_high, 4);
      run[i] = _mm512_or_si512(low, _mm512_and_si512(for_low, bits_4_5));
      run[8 + i] = _mm512_or_si512(high, _mm512_and_si512(for_high, bits_4_5));
    }
  }

  __m512i upper[8];  ///< the upper bits of this and the next run: 32 bytes of qh
};

struct Q6KRows {
  using Panels = SuperBlocks<Q6K>;
  static constexpr size_t kSubColumns = 16;
  static constexpr int kOffset = 32;
  static constexpr bool kHasMin = false;
  static constexpr bool kWide = false;

  static constexpr size_t column(size_t k, size_t quarter) { return 64 * k + 16 * quarter; }

  static inline void scales(const Quad& blocks, const int16_t*, QuadScales<16>& scales) {
    constexpr size_t kScales = offsetof(BlockQ6_K, scales);
    constexpr size_t kD = offsetof(BlockQ6_K, d);
    const __m512i bytes = blocks.load_16_each(kScales);
    scales.scale[0] = _mm512_cvtepi8_epi16(_mm512_castsi512_si256(bytes));
    scales.scale[1] = _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(bytes, 1));
    scales.d = blocks.load_f16_each(kD);
  }

  static inline void codes(const std::byte* block, __m512i (&codes)[4]) {
    constexpr size_t kQh = offsetof(BlockQ6_K, qh);
    for (size_t i = 0; i < 2; ++i) {
      const __m512i both = _mm512_loadu_si512(block + 64 * i);
      const __m512i upper = _mm512_broadcast_i64x4(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + kQh + 32 * i)));
      codes[2 * i] = low_half_bytes_or(both, move_bits<2, 4>(upper, 0, 2));
      codes[2 * i + 1] = _mm512_or_si512(high_half_bytes(both), move_bits<2, 4>(upper, 4, 6));
    }
  }
};

}  // namespace

void matvec_q6_k(const MatmulArgs& args) {
  multiply_rows<RowSuperBlocks<Q6KRows>>(args);
}
void matmul_q6_k(const MatmulArgs& args) {
  multiply_panels<SuperBlocks<Q6K>>(args);
}

}  // namespace sluice::kernels::avx512

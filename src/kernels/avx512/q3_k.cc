#include "kernels/avx512/avx512.h"
#include "kernels/avx512/spread.h"
#include "kernels/avx512/super_block.h"
#include "kernels/avx512/two_bits.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q3K : AscendingRuns {
  static constexpr size_t kBlockBytes = sizeof(BlockQ3_K);
  static constexpr size_t kSubColumns = 16;
  static constexpr int kOffset = 4;
  static constexpr bool kHasMin = false;

  /// quant/blocks.h describes the packing (unpack_q3_k_scales). What is read starts four bytes
  /// before the scales, so as not to end behind the block.
  inline void unpack_scales(const PanelBlocks& blocks, SuperScales& scales) {
    constexpr size_t kScales = offsetof(BlockQ3_K, scales);
    constexpr size_t kD = offsetof(BlockQ3_K, d);
    __m512i packed[4];
    load_dwords(blocks, kScales - 4, packed);
    __m512i upper = packed[3];
    for (size_t i = 0; i < 4; ++i) {
      const __m512i both = packed[1 + i % 2];
      const __m512i low = i < 2 ? both : _mm512_srli_epi32(both, 4);
      const __m512i stored =
          _mm512_or_si512(_mm512_and_si512(low, _mm512_set1_epi8(15)),
                          _mm512_slli_epi32(_mm512_and_si512(upper, _mm512_set1_epi8(3)), 4));
      spread_signed_bytes(_mm512_sub_epi8(stored, _mm512_set1_epi8(32)), scales.scale + 4 * i);
      upper = _mm512_srli_epi32(upper, 2);
    }
    scales.d = load_f16(blocks, kD);
  }

  inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kHmask = offsetof(BlockQ3_K, hmask);
    constexpr size_t kQs = offsetof(BlockQ3_K, qs);
    if (index == 0) {
      load_dwords(blocks, kHmask, third);
      load_dwords(blocks, kHmask + 16, third + 4);
    }
    codes.unpack_run(blocks, kQs, index, run);
    const __m512i bit_2 = _mm512_set1_epi8(4);
    const __m512i to_bit_2 = _mm512_set1_epi32(static_cast<int>(2 * index + 30) % 32);
    for (size_t i = 0; i < 8; ++i) {
      // Bits 2·index and 2·index + 1 of each byte come to lie in its bits 2 and 3.
      const __m512i moved = _mm512_rorv_epi32(third[i], to_bit_2);
      run[i] = _mm512_or_si512(run[i], _mm512_and_si512(moved, bit_2));
      run[8 + i] =
          _mm512_or_si512(run[8 + i], _mm512_and_si512(_mm512_srli_epi32(moved, 1), bit_2));
    }
  }

  TwoBits codes;
  __m512i third[8];  ///< the third bits of all columns: hmask
};

struct Q3KRows : RowTwoBits {
  using Panels = SuperBlocks<Q3K>;
  static constexpr size_t kSubColumns = 16;
  static constexpr int kOffset = 4;
  static constexpr bool kHasMin = false;
  static constexpr bool kWide = false;

  /// What is read starts four bytes before the scales, as above.
  static inline void scales(const Quad& blocks, const int16_t*, QuadScales<16>& scales) {
    constexpr size_t kScales = offsetof(BlockQ3_K, scales);
    constexpr size_t kD = offsetof(BlockQ3_K, d);
    const __m512i packed = blocks.load_16_each(kScales - 4);
    const __m512i halves = _mm512_srlv_epi64(_mm512_shuffle_epi32(packed, _MM_PERM_CBCB),
                                             _mm512_setr_epi64(0, 4, 0, 4, 0, 4, 0, 4));
    const __m512i twos = _mm512_srlv_epi32(_mm512_shuffle_epi32(packed, _MM_PERM_DDDD),
                                           _mm512_broadcast_i32x4(_mm_setr_epi32(0, 2, 4, 6)));
    const __m512i upper = _mm512_slli_epi16(_mm512_and_si512(twos, _mm512_set1_epi8(3)), 4);
    const __m512i stored = low_half_bytes_or(halves, upper);
    const __m512i bytes = _mm512_sub_epi8(stored, _mm512_set1_epi8(32));
    scales.scale[0] = _mm512_cvtepi8_epi16(_mm512_castsi512_si256(bytes));
    scales.scale[1] = _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(bytes, 1));
    scales.d = blocks.load_f16_each(kD);
  }

  static inline void codes(const std::byte* block, __m512i (&codes)[4]) {
    constexpr size_t kHmask = offsetof(BlockQ3_K, hmask);
    constexpr size_t kQs = offsetof(BlockQ3_K, qs);
    take(block + kQs, codes);
    const __m512i third = _mm512_broadcast_i64x4(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + kHmask)));
    for (size_t k = 0; k < 4; ++k)
      codes[k] = _mm512_or_si512(codes[k], move_bits<1, 2>(third, k, k + 4));
  }
};

}  // namespace

void matvec_q3_k(const MatmulArgs& args) {
  multiply_rows<RowSuperBlocks<Q3KRows>>(args);
}
void matmul_q3_k(const MatmulArgs& args) {
  multiply_panels<SuperBlocks<Q3K>>(args);
}

}  // namespace sluice::kernels::avx512

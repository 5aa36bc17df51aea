#include "kernels/avx512/avx512.h"
#include "kernels/avx512/spread.h"
#include "kernels/avx512/super_block.h"
#include "kernels/avx512/two_bits.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q2K : AscendingRuns {
  static constexpr size_t kBlockBytes = sizeof(BlockQ2_K);
  static constexpr size_t kSubColumns = 16;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true;

  inline void unpack_scales(const PanelBlocks& blocks, SuperScales& scales) {
    constexpr size_t kScales = offsetof(BlockQ2_K, scales);
    constexpr size_t kD = offsetof(BlockQ2_K, d);
    constexpr size_t kDmin = offsetof(BlockQ2_K, dmin);
    __m512i packed[4];
    load_dwords(blocks, kScales, packed);
    const __m512i low_half = _mm512_set1_epi8(15);
    for (size_t i = 0; i < 4; ++i) {
      spread_bytes(_mm512_and_si512(packed[i], low_half), scales.scale + 4 * i);
      const __m512i mins = _mm512_and_si512(_mm512_srli_epi32(packed[i], 4), low_half);
      spread_pairs(mins, scales.min + 2 * i);
    }
    scales.d = load_f16(blocks, kD);
    scales.dmin = load_f16(blocks, kDmin);
  }

  inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQs = offsetof(BlockQ2_K, qs);
    codes.unpack_run(blocks, kQs, index, run);
  }

  TwoBits codes;
};

struct Q2KRows : RowTwoBits {
  using Panels = SuperBlocks<Q2K>;
  static constexpr size_t kSubColumns = 16;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true;
  static constexpr bool kWide = false;

  static inline void scales(const Quad& blocks, const int16_t* sum16, QuadScales<16>& scales) {
    constexpr size_t kScales = offsetof(BlockQ2_K, scales);
    constexpr size_t kD = offsetof(BlockQ2_K, d);
    const __m512i both = blocks.load_16_each(kScales);
    widen(_mm512_and_si512(both, _mm512_set1_epi8(15)), scales.scale);
    __m512i mins[2];
    widen(high_half_bytes(both), mins);
    const __m512i sums =
        _mm512_broadcast_i64x4(_mm256_load_si256(reinterpret_cast<const __m256i*>(sum16)));
    for (__m512i& rows : mins) rows = _mm512_madd_epi16(rows, sums);
    scales.mins = _mm512_add_epi32(_mm512_shuffle_i64x2(mins[0], mins[1], 0x88),
                                   _mm512_shuffle_i64x2(mins[0], mins[1], 0xdd));
    const __m256 floats = blocks.load_f16_pair_each(kD);
    scales.d = _mm256_castps256_ps128(floats);
    scales.dmin = _mm256_extractf128_ps(floats, 1);
  }

  static inline void codes(const std::byte* block, __m512i (&codes)[4]) {
    constexpr size_t kQs = offsetof(BlockQ2_K, qs);
    take(block + kQs, codes);
  }

 private:
  static inline void widen(__m512i bytes, __m512i (&words)[2]) {
    words[0] = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(bytes));
    words[1] = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(bytes, 1));
  }
};

}  // namespace

void matvec_q2_k(const MatmulArgs& args) {
  multiply_rows<RowSuperBlocks<Q2KRows>>(args);
}
void matmul_q2_k(const MatmulArgs& args) {
  multiply_panels<SuperBlocks<Q2K>>(args);
}

}  // namespace sluice::kernels::avx512

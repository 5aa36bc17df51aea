#include "kernels/avx512/avx512.h"
#include "kernels/avx512/iq4_values.h"
#include "kernels/avx512/row_super_block.h"
#include "kernels/avx512/spread.h"
#include "kernels/avx512/super_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct IQ4XS : AscendingRuns {
  static constexpr size_t kBlockBytes = sizeof(BlockIQ4_XS);
  static constexpr size_t kSubColumns = 32;
  static constexpr int kOffset = kIq4Offset;
  static constexpr bool kHasMin = false;

  /// quant/blocks.h describes the packing.
  inline void unpack_scales(const PanelBlocks& blocks, SuperScales& scales) {
    __m512i header[4];  // d and the upper two bits of each scale; the low four
    load_dwords(blocks, 0, header);
    for (size_t s = 0; s < 8; ++s) {
      const auto twos = static_cast<unsigned>(12 + 2 * s);
      const auto halves = static_cast<unsigned>(4 * s);
      const __m512i upper =
          _mm512_and_si512(_mm512_srli_epi32(header[0], twos), _mm512_set1_epi32(0x30));
      const __m512i low =
          _mm512_and_si512(_mm512_srli_epi32(header[1], halves), _mm512_set1_epi32(0x0f));
      _mm512_store_si512(scales.scale[s],
                         _mm512_sub_epi32(_mm512_or_si512(upper, low), _mm512_set1_epi32(32)));
    }
    scales.d = widen_low_halves(header[0]);
  }

  inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQs = offsetof(BlockIQ4_XS, qs);
    for (size_t b = 0; b < 2; ++b) {
      __m512i packed[4];
      load_dwords(blocks, kQs + 32 * index + 16 * b, packed);
      for (size_t i = 0; i < 4; ++i) {
        run[8 * b + i] = iq4_codes(packed[i]);
        run[8 * b + 4 + i] = iq4_codes(_mm512_srli_epi32(packed[i], 4));
      }
    }
  }
};

struct IQ4XSRows {
  using Panels = SuperBlocks<IQ4XS>;
  static constexpr size_t kSubColumns = 32;
  static constexpr int kOffset = kIq4Offset;
  static constexpr bool kHasMin = false;
  static constexpr bool kWide = true;

  static constexpr size_t column(size_t k, size_t quarter) {
    return 128 * (k / 2) + 32 * quarter + 16 * (k % 2);
  }

  /// The low halves are taken from the second four bytes, the upper bits from the first.
  static inline void scales(const Quad& blocks, const int16_t*, QuadScales<8>& scales) {
    const __m512i headers = blocks.load_16_each(0);
    const __m512i low_at = _mm512_set1_epi64(0x3c3834302c282420);
    const __m512i upper_at = _mm512_set1_epi64(0x1e1c1a1816141210);
    const __m512i low =
        _mm512_and_si512(_mm512_multishift_epi64_epi8(low_at, headers), _mm512_set1_epi8(15));
    const __m512i upper =
        _mm512_and_si512(_mm512_multishift_epi64_epi8(upper_at, headers), _mm512_set1_epi8(3));
    const __m512i stored = _mm512_or_si512(low, _mm512_slli_epi16(upper, 4));
    scales.scale[0] = _mm512_sub_epi16(_mm512_unpacklo_epi8(stored, _mm512_setzero_si512()),
                                       _mm512_set1_epi16(32));
    scales.d = _mm256_castps256_ps128(blocks.load_f16_pair_each(0));
  }

  static inline void codes(const std::byte* block, __m512i (&codes)[4]) {
    constexpr size_t kQs = offsetof(BlockIQ4_XS, qs);
    for (size_t i = 0; i < 2; ++i) {
      const __m512i both = _mm512_loadu_si512(block + kQs + 64 * i);
      codes[2 * i] = iq4_codes(both);
      codes[2 * i + 1] = iq4_codes(_mm512_srli_epi16(both, 4));
    }
  }
};

}  // namespace

void matvec_iq4_xs(const MatmulArgs& args) {
  multiply_rows<RowSuperBlocks<IQ4XSRows>>(args);
}
void matmul_iq4_xs(const MatmulArgs& args) {
  multiply_panels<SuperBlocks<IQ4XS>>(args);
}

}  // namespace sluice::kernels::avx512

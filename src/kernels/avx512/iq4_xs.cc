#include "kernels/avx512/avx512.h"
#include "kernels/avx512/iq4_values.h"
#include "kernels/avx512/spread.h"
#include "kernels/avx512/super_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct IQ4XS {
  static constexpr size_t kBlockBytes = 136;
  static constexpr size_t kSubColumns = 32;
  static constexpr int kOffset = kIq4Offset;
  static constexpr bool kHasMin = false;

  static constexpr size_t half_column(size_t run, size_t half) { return 64 * run + 32 * half; }

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
    constexpr size_t kQs = 8;  // offsetof(BlockIQ4_XS, qs)
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

}  // namespace

void matmul_iq4_xs(const MatmulArgs& args) {
  multiply_panels<SuperBlocks<IQ4XS>>(args);
}

}  // namespace sluice::kernels::avx512

#include "kernels/avx512/avx512.h"
#include "kernels/avx512/spread.h"
#include "kernels/avx512/super_block.h"
#include "kernels/avx512/two_bits.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q2K {
  static constexpr size_t kBlockBytes = 84;
  static constexpr size_t kSubColumns = 16;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true;

  static constexpr size_t half_column(size_t run, size_t half) { return 64 * run + 32 * half; }

  inline void unpack_scales(const PanelBlocks& blocks, SuperScales& scales) {
    constexpr size_t kScales = 0;  // offsetof(BlockQ2_K, scales)
    constexpr size_t kD = 80;
    constexpr size_t kDmin = 82;
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
    constexpr size_t kQs = 16;  // offsetof(BlockQ2_K, qs)
    codes.unpack_run(blocks, kQs, index, run);
  }

  TwoBits codes;
};

}  // namespace

void matmul_q2_k(const MatmulArgs& args) {
  multiply_panels<SuperBlocks<Q2K>>(args);
}

}  // namespace sluice::kernels::avx512

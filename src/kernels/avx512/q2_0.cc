#include "kernels/avx512/avx512.h"
#include "kernels/avx512/small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q20 : HalfScaled<BlockQ2_0, BlockQ2_0::kElements> {
  static constexpr int kOffset = 1;

  static inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQs = offsetof(BlockQ2_0, qs);
    __m512i packed[4];
    load_dwords(blocks, index * kBlockBytes + kQs, packed);
    const __m512i two_bits = _mm512_set1_epi8(3);
#pragma GCC unroll 16
    for (size_t g = 0; g < kRunGroups; ++g) {
      const int first = static_cast<int>(8 * (g % 4));
      run[g] = _mm512_and_si512(spread(packed[g / 4], kEachSecondBit, first), two_bits);
    }
  }
};

}  // namespace

void matmul_q2_0(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<Q20>>(args);
}

}  // namespace sluice::kernels::avx512

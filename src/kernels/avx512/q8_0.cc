#include "kernels/avx512/avx512.h"
#include "kernels/avx512/small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q80 : HalfScaled<32, 34> {
  static constexpr int kOffset = 128;

  static inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQs = 2;  // offsetof(BlockQ8_0, qs)
    const size_t first = 2 * index * kBlockBytes + kQs;
    load_dwords(blocks, first, run);
    load_dwords(blocks, first + 16, run + 4);
    load_dwords(blocks, first + kBlockBytes, run + 8);
    load_dwords(blocks, first + kBlockBytes + 16, run + 12);
    const __m512i sign_bit = _mm512_set1_epi8(-128);  // flipping it adds 128
    for (__m512i& group : run) group = _mm512_xor_si512(group, sign_bit);
  }
};

}  // namespace

void matmul_q8_0(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<Q80>>(args);
}

}  // namespace sluice::kernels::avx512

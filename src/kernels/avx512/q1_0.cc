#include "kernels/avx512/avx512.h"
#include "kernels/avx512/small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q10 : HalfScaled<BlockQ1_0, BlockQ1_0::kElements> {
  static constexpr int kOffset = 1;

  /// The bits come to be codes 0 and 2.
  inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQs = offsetof(BlockQ1_0, qs);
    if (index % 2 == 0) load_dwords(blocks, index / 2 * kBlockBytes + kQs, bits);
    for (size_t half = 0; half < 2; ++half)
      spread_bits(bits[index % 2 * 2 + half], 1, run + 8 * half);
  }

  __m512i bits[4];  ///< of the 128 columns of a block
};

}  // namespace

void matmul_q1_0(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<Q10>>(args);
}

}  // namespace sluice::kernels::avx512

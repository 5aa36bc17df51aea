#include "kernels/avx2/avx2.h"
#include "kernels/avx2/small_block.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q10 : HalfScaled<BlockQ1_0, BlockQ1_0::kElements> {
  static constexpr int kOffset = 1;
  static constexpr size_t kCodeMax = 2;

  static void codes(const std::byte* const* blocks, size_t part, Codes& to) {
    to = {};
    add_bits(blocks, offsetof(BlockQ1_0, qs) + 4 * part, 2, to);
  }
};

}  // namespace

void matvec_q1_0(const MatmulArgs& args) {
  matvec<SmallBlocks<Q10>>(args);
}
void matmul_q1_0(const MatmulArgs& args) {
  matmul<SmallBlocks<Q10>>(args);
}

}  // namespace sluice::kernels::avx2

#include "kernels/avx2/avx2.h"
#include "kernels/avx2/small_block.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q20 : HalfScaled<BlockQ2_0, BlockQ2_0::kElements> {
  static constexpr int kOffset = 1;
  static constexpr size_t kCodeMax = 3;

  static void codes(const std::byte* const* blocks, size_t part, Codes& to) {
    two_bits(blocks, offsetof(BlockQ2_0, qs) + 8 * part, to);
  }
};

}  // namespace

void matvec_q2_0(const MatmulArgs& args) {
  matvec<SmallBlocks<Q20>>(args);
}
void matmul_q2_0(const MatmulArgs& args) {
  matmul<SmallBlocks<Q20>>(args);
}

}  // namespace sluice::kernels::avx2

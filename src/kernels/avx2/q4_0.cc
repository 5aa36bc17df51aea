#include "kernels/avx2/avx2.h"
#include "kernels/avx2/small_block.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q40 : HalfScaled<BlockQ4_0> {
  static constexpr int kOffset = 8;
  static constexpr size_t kCodeMax = 15;

  static void codes(const std::byte* const* blocks, size_t, Codes& to) {
    half_bytes(blocks, offsetof(BlockQ4_0, qs), to);
  }
};

}  // namespace

void matvec_q4_0(const MatmulArgs& args) {
  matvec<SmallBlocks<Q40>>(args);
}
void matmul_q4_0(const MatmulArgs& args) {
  matmul<SmallBlocks<Q40>>(args);
}

}  // namespace sluice::kernels::avx2

#include "kernels/avx2/avx2.h"
#include "kernels/avx2/small_block.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q41 : HalfScaled<BlockQ4_1> {
  static constexpr int kOffset = 0;
  static constexpr size_t kCodeMax = 15;

  static void codes(const std::byte* const* blocks, size_t, Codes& to) {
    half_bytes(blocks, offsetof(BlockQ4_1, qs), to);
  }
};

}  // namespace

void matvec_q4_1(const MatmulArgs& args) {
  matvec<SmallBlocks<Q41>>(args);
}
void matmul_q4_1(const MatmulArgs& args) {
  matmul<SmallBlocks<Q41>>(args);
}

}  // namespace sluice::kernels::avx2

#include "kernels/avx2/avx2.h"
#include "kernels/avx2/small_block.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q50 : HalfScaled<BlockQ5_0> {
  static constexpr int kOffset = 16;
  static constexpr size_t kCodeMax = 31;

  static void codes(const std::byte* const* blocks, size_t, Codes& to) {
    half_bytes(blocks, offsetof(BlockQ5_0, qs), to);
    add_bits(blocks, offsetof(BlockQ5_0, qh), 16, to);
  }
};

}  // namespace

void matvec_q5_0(const MatmulArgs& args) {
  matvec<SmallBlocks<Q50>>(args);
}
void matmul_q5_0(const MatmulArgs& args) {
  matmul<SmallBlocks<Q50>>(args);
}

}  // namespace sluice::kernels::avx2

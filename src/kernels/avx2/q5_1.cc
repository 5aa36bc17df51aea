#include "kernels/avx2/avx2.h"
#include "kernels/avx2/small_block.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q51 : HalfScaled<BlockQ5_1> {
  static constexpr int kOffset = 0;
  static constexpr size_t kCodeMax = 31;

  static void codes(const std::byte* const* blocks, size_t, Codes& to) {
    half_bytes(blocks, offsetof(BlockQ5_1, qs), to);
    add_bits(blocks, offsetof(BlockQ5_1, qh), 16, to);
  }
};

}  // namespace

void matvec_q5_1(const MatmulArgs& args) {
  matvec<SmallBlocks<Q51>>(args);
}
void matmul_q5_1(const MatmulArgs& args) {
  matmul<SmallBlocks<Q51>>(args);
}

}  // namespace sluice::kernels::avx2

#include "kernels/avx2/nibble_blocks.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q40 {
  using Block = BlockQ4_0;
  static constexpr int kOffset = 8;

  static __m256i fifths(const std::byte*) { return _mm256_setzero_si256(); }
};

}  // namespace

void matvec_q4_0(const MatmulArgs& args) {
  matvec<NibbleBlocks<Q40>>(args);
}
void matmul_q4_0(const MatmulArgs& args) {
  matmul<NibbleBlocks<Q40>>(args);
}

}  // namespace sluice::kernels::avx2

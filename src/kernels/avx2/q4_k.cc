#include "kernels/avx2/avx2.h"
#include "kernels/avx2/k_header.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q4K : KHeader<BlockQ4_K> {
  static constexpr size_t kCodeMax = 15;

  template <class Source>
  static __m256i codes(const Source& source, size_t g) {
    return four_bits(source, offsetof(BlockQ4_K, qs), g);
  }
};

}  // namespace

void matvec_q4_k(const MatmulArgs& args) {
  matvec<SuperBlocks<Q4K>>(args);
}
void matmul_q4_k(const MatmulArgs& args) {
  matmul<SuperBlocks<Q4K>>(args);
}

}  // namespace sluice::kernels::avx2

#include "kernels/avx2/avx2.h"
#include "kernels/avx2/super_block.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q2K {
  static constexpr size_t kBlockBytes = sizeof(BlockQ2_K);
  static constexpr size_t kOffsetD = offsetof(BlockQ2_K, d);
  static constexpr size_t kSubBlock = 16;
  static constexpr size_t kCodeMax = 3;
  static constexpr bool kSigned = false;
  static constexpr bool kTwoSubBlocks = false;
  static constexpr bool kHasMin = true;

  template <class Source>
  static __m256i codes(const Source& source, size_t g) {
    return two_bits(source, offsetof(BlockQ2_K, qs), g);
  }

  static __m256i scales(const std::byte* block) {
    const __m128i both = load16(block + offsetof(BlockQ2_K, scales));
    return _mm256_cvtepu8_epi16(_mm_and_si128(both, _mm_set1_epi8(15)));
  }

  static __m256i sum_weights(const std::byte* block) {
    const __m256i both = _mm256_cvtepu8_epi16(load16(block + offsetof(BlockQ2_K, scales)));
    return _mm256_srli_epi16(both, 4);
  }
};

}  // namespace

void matvec_q2_k(const MatmulArgs& args) {
  matvec<SuperBlocks<Q2K>>(args);
}
void matmul_q2_k(const MatmulArgs& args) {
  matmul<SuperBlocks<Q2K>>(args);
}

}  // namespace sluice::kernels::avx2

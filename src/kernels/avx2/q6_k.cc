#include "kernels/avx2/avx2.h"
#include "kernels/avx2/super_block.h"

namespace sluice::kernels::avx2 {
namespace {

/// Codes are q + 32, so Σ_s scale_s · 32 · Σ x comes off: the factors of sum16 are −32 · scale.
struct Q6K {
  static constexpr size_t kBlockBytes = sizeof(BlockQ6_K);
  static constexpr size_t kOffsetD = offsetof(BlockQ6_K, d);
  static constexpr size_t kSubBlock = 16;
  static constexpr size_t kCodeMax = 63;
  static constexpr bool kSigned = false;
  static constexpr bool kTwoSubBlocks = false;
  static constexpr bool kHasMin = false;

  template <class Source>
  static __m256i codes(const Source& source, size_t g) {
    const size_t half = g / 4;
    const size_t k = g % 4;
    const __m256i ql = source.load(offsetof(BlockQ6_K, ql) + 64 * half + 32 * (k % 2));
    const __m256i qh = source.load(offsetof(BlockQ6_K, qh) + 32 * half);
    const __m256i shifted = k < 2 ? ql : _mm256_srli_epi16(ql, 4);
    const __m256i low = low_half_bytes(shifted);
    const __m256i high = k < 2 ? _mm256_slli_epi16(qh, static_cast<int>(4 - 2 * k))
                               : _mm256_srli_epi16(qh, static_cast<int>(2 * k - 4));
    return _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi8(48)));
  }

  static __m256i scales(const std::byte* block) {
    return _mm256_cvtepi8_epi16(load16(block + offsetof(BlockQ6_K, scales)));
  }

  static __m256i sum_weights(const std::byte* block) {
    return _mm256_slli_epi16(_mm256_sub_epi16(_mm256_setzero_si256(), scales(block)), 5);
  }
};

}  // namespace

void matvec_q6_k(const MatmulArgs& args) {
  matvec<SuperBlocks<Q6K>>(args);
}
void matmul_q6_k(const MatmulArgs& args) {
  matmul<SuperBlocks<Q6K>>(args);
}

}  // namespace sluice::kernels::avx2

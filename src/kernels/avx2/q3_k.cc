#include "kernels/avx2/avx2.h"
#include "kernels/avx2/super_block.h"

namespace sluice::kernels::avx2 {
namespace {

/// Codes are q + 4, so Σ_s scale_s · 4 · Σ x comes off: the factors of sum16 are −4 · scale.
struct Q3K {
  static constexpr size_t kBlockBytes = sizeof(BlockQ3_K);
  static constexpr size_t kOffsetD = offsetof(BlockQ3_K, d);
  static constexpr size_t kSubBlock = 16;
  static constexpr size_t kCodeMax = 7;
  static constexpr bool kSigned = false;
  static constexpr bool kTwoSubBlocks = false;
  static constexpr bool kHasMin = false;

  template <class Source>
  static __m256i codes(const Source& source, size_t g) {
    const __m256i thirds = source.load(offsetof(BlockQ3_K, hmask));
    const __m256i third = g < 2 ? _mm256_slli_epi16(thirds, static_cast<int>(2 - g))
                                : _mm256_srli_epi16(thirds, static_cast<int>(g - 2));
    return _mm256_or_si256(two_bits(source, offsetof(BlockQ3_K, qs), g),
                           _mm256_and_si256(third, _mm256_set1_epi8(4)));
  }

  /// quant/blocks.h describes the packing (unpack_q3_k_scales).
  static __m256i scales(const std::byte* block) {
    const std::byte* packed = block + offsetof(BlockQ3_K, scales);
    const __m128i halves = _mm_set1_epi64x(load_integer<int64_t>(packed));
    const __m128i low =
        _mm_and_si128(_mm_srlv_epi64(halves, _mm_set_epi64x(4, 0)), _mm_set1_epi8(15));
    const __m128i twos = _mm_set1_epi32(load_integer<int32_t>(packed + 8));
    const __m128i high =
        _mm_and_si128(_mm_srlv_epi32(twos, _mm_setr_epi32(0, 2, 4, 6)), _mm_set1_epi8(3));
    const __m128i stored = _mm_or_si128(low, _mm_slli_epi16(high, 4));
    return _mm256_cvtepi8_epi16(_mm_sub_epi8(stored, _mm_set1_epi8(32)));
  }

  static __m256i sum_weights(const std::byte* block) {
    return _mm256_mullo_epi16(scales(block), _mm256_set1_epi16(-4));
  }
};

}  // namespace

void matvec_q3_k(const MatmulArgs& args) {
  matvec<SuperBlocks<Q3K>>(args);
}
void matmul_q3_k(const MatmulArgs& args) {
  matmul<SuperBlocks<Q3K>>(args);
}

}  // namespace sluice::kernels::avx2

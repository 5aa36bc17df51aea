#include "kernels/avx2/avx2.h"
#include "kernels/avx2/small_formats.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q4_0 {
  static constexpr size_t kBlockBytes = sizeof(BlockQ4_0);
  static constexpr size_t kOffsetD = offsetof(BlockQ4_0, d);
  static constexpr size_t kPairSums = 4;  // 4 · 15 · 127 · 2 < 2^15
  static constexpr int kOffset = 8;

  static __m256i low_bits(__m256i bytes) { return _mm256_and_si256(bytes, _mm256_set1_epi8(15)); }

  static __m256i codes(const std::byte* block) {
    const __m128i both = load16(block + offsetof(BlockQ4_0, qs));
    return low_bits(
        _mm256_inserti128_si256(_mm256_castsi128_si256(both), _mm_srli_epi16(both, 4), 1));
  }

  static __m256i codes(const std::byte* low, const std::byte* high, size_t piece) {
    const size_t offset = offsetof(BlockQ4_0, qs);
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(low + offset)),
                                                 load16(high + offset), 1);
    return low_bits(piece == 0 ? both : _mm256_srli_epi16(both, 4));
  }

  static __m256i multiply(__m256i codes, __m256i x) { return _mm256_maddubs_epi16(codes, x); }
};

}  // namespace

void matvec_q4_0(const MatmulArgs& args) {
  matvec<SmallFormat<Q4_0>>(args);
}
void matmul_q4_0(const MatmulArgs& args) {
  matmul<SmallFormat<Q4_0>>(args);
}

}  // namespace sluice::kernels::avx2

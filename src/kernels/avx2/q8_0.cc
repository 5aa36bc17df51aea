#include "kernels/avx2/avx2.h"
#include "kernels/avx2/small_formats.h"

namespace sluice::kernels::avx2 {
namespace {

/// Signed weights take the sign trick: |w| · (x with the sign of w). A file may hold −128, whose
/// magnitude is 128 as an unsigned byte; 128 · 127 · 2 < 2^15, so one pair sum always fits.
struct Q8_0 {
  static constexpr size_t kBlockBytes = sizeof(BlockQ8_0);
  static constexpr size_t kOffsetD = offsetof(BlockQ8_0, d);
  static constexpr size_t kPairSums = 1;
  static constexpr int kOffset = 0;

  static __m256i codes(const std::byte* block) { return load32(block + offsetof(BlockQ8_0, qs)); }

  static __m256i codes(const std::byte* low, const std::byte* high, size_t piece) {
    const size_t offset = offsetof(BlockQ8_0, qs) + 16 * piece;
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(low + offset)),
                                   load16(high + offset), 1);
  }

  static __m256i multiply(__m256i codes, __m256i x) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(x, codes));
  }
};

}  // namespace

void matvec_q8_0(const MatmulArgs& args) {
  matvec<SmallFormat<Q8_0>>(args);
}
void matmul_q8_0(const MatmulArgs& args) {
  matmul<SmallFormat<Q8_0>>(args);
}

}  // namespace sluice::kernels::avx2

#include "kernels/avx2/avx2.h"
#include "kernels/avx2/fp4.h"
#include "kernels/avx2/small_block.h"

namespace sluice::kernels::avx2 {
namespace {

struct Mxfp4 {
  using Block = BlockMXFP4;
  static constexpr size_t kElements = kSmallBlock;
  static constexpr size_t kScaleColumns = kSmallBlock;
  static constexpr int kOffset = kFp4Offset;
  static constexpr size_t kCodeMax = 2 * kFp4Offset;

  static void codes(const std::byte* const* blocks, size_t, Codes& to) {
    half_bytes(blocks, offsetof(Block, qs), to);
    look_up(fp4_codes(), to);
  }

  /// half_of_e8m0: the exponent is e − 1, and where that is not positive the float subnormal.
  static __m256 scales(const std::byte* const* blocks, size_t) {
    const __m256i e = _mm256_cvtepu8_epi32(byte_of_each(blocks, offsetof(Block, e)));
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    const __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, subnormal, is_small));
  }
};

}  // namespace

void matvec_mxfp4(const MatmulArgs& args) {
  matvec<SmallBlocks<Mxfp4>>(args);
}
void matmul_mxfp4(const MatmulArgs& args) {
  matmul<SmallBlocks<Mxfp4>>(args);
}

}  // namespace sluice::kernels::avx2

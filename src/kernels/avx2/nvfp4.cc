#include "kernels/avx2/avx2.h"
#include "kernels/avx2/fp4.h"
#include "kernels/avx2/small_block.h"

namespace sluice::kernels::avx2 {
namespace {

struct Nvfp4 {
  using Block = BlockNVFP4;
  static constexpr size_t kElements = Block::kElements;
  static constexpr size_t kScaleColumns = Block::kSubBlock;
  static constexpr int kOffset = kFp4Offset;
  static constexpr size_t kCodeMax = 2 * kFp4Offset;

  /// Low and high halves take turns: eight bytes are a sub-block.
  static void codes(const std::byte* const* blocks, size_t part, Codes& to) {
    Codes halves;
    half_bytes(blocks, offsetof(Block, qs) + 16 * part, halves);
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      to.q[0][half] = halves.q[0][half];
      to.q[1][half] = halves.q[2][half];
      to.q[2][half] = halves.q[1][half];
      to.q[3][half] = halves.q[3][half];
    }
    look_up(fp4_codes(), to);
  }

  /// half_of_e4m3: read as binary16, the exponent is 8 too small; and it is to be the half.
  static __m256 scales(const std::byte* const* blocks, size_t s) {
    const __m128i bytes = byte_of_each(blocks, offsetof(Block, scales) + s);
    const __m128i nan = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));
    const __m128i numbers = _mm_andnot_si128(nan, _mm_and_si128(bytes, _mm_set1_epi8(0x7f)));
    const __m128i halves = _mm_slli_epi16(_mm_cvtepu8_epi16(numbers), 7);
    return _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(0x1p7f));
  }
};

}  // namespace

void matvec_nvfp4(const MatmulArgs& args) {
  matvec<SmallBlocks<Nvfp4>>(args);
}
void matmul_nvfp4(const MatmulArgs& args) {
  matmul<SmallBlocks<Nvfp4>>(args);
}

}  // namespace sluice::kernels::avx2

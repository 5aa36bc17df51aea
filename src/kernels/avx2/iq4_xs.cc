#include "kernels/avx2/avx2.h"
#include "kernels/avx2/iq4_values.h"
#include "kernels/avx2/super_block.h"

namespace sluice::kernels::avx2 {
namespace {

struct IQ4XS {
  static constexpr size_t kBlockBytes = sizeof(BlockIQ4_XS);
  static constexpr size_t kOffsetD = offsetof(BlockIQ4_XS, d);
  static constexpr size_t kSubBlock = 32;
  static constexpr size_t kCodeMax = 127;
  static constexpr bool kSigned = true;
  static constexpr bool kTwoSubBlocks = true;
  static constexpr bool kHasMin = false;

  template <class Source>
  static __m256i codes(const Source& source, size_t g) {
    return iq4_values(four_bits(source, offsetof(BlockIQ4_XS, qs), g));
  }

  /// quant/blocks.h describes the packing.
  static __m256i scales(const std::byte* block) {
    const auto halves = load_integer<int32_t>(block + offsetof(BlockIQ4_XS, scales_l));
    const int twos = load_integer<uint16_t>(block + offsetof(BlockIQ4_XS, scales_h)) << 4;
    const __m256i two_steps = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    const __m256i low =
        _mm256_srlv_epi32(_mm256_set1_epi32(halves), _mm256_slli_epi32(two_steps, 1));
    const __m256i high = _mm256_srlv_epi32(_mm256_set1_epi32(twos), two_steps);
    const __m256i stored = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(15)),
                                           _mm256_and_si256(high, _mm256_set1_epi32(48)));
    const __m256i scales = _mm256_sub_epi32(stored, _mm256_set1_epi32(32));
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(scales, scales), 0x88);
  }
};

}  // namespace

void matvec_iq4_xs(const MatmulArgs& args) {
  matvec<SuperBlocks<IQ4XS>>(args);
}
void matmul_iq4_xs(const MatmulArgs& args) {
  matmul<SuperBlocks<IQ4XS>>(args);
}

}  // namespace sluice::kernels::avx2

#include <cstring>

#include "kernels/avx2/nibble_blocks.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q50 {
  using Block = BlockQ5_0;
  static constexpr int kOffset = 16;

  /// Byte i of the register looks at bit i of qh.
  static __m256i fifths(const std::byte* block) {
    int32_t bits;
    std::memcpy(&bits, block + offsetof(Block, qh), sizeof bits);
    const __m256i byte_of =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), byte_of);
    const __m256i bit_of = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit_of), bit_of);
    return _mm256_and_si256(set, _mm256_set1_epi8(16));
  }
};

}  // namespace

void matvec_q5_0(const MatmulArgs& args) {
  matvec<NibbleBlocks<Q50>>(args);
}
void matmul_q5_0(const MatmulArgs& args) {
  matmul<NibbleBlocks<Q50>>(args);
}

}  // namespace sluice::kernels::avx2

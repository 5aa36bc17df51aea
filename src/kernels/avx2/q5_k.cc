#include "kernels/avx2/avx2.h"
#include "kernels/avx2/k_header.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q5K : KHeader<BlockQ5_K> {
  static constexpr size_t kCodeMax = 31;

  template <class Source>
  static __m256i codes(const Source& source, size_t g) {
    const __m256i fifths = source.load(offsetof(BlockQ5_K, qh));
    const __m256i low = four_bits(source, offsetof(BlockQ5_K, qs), g);
    const __m256i fifth = g < 4 ? _mm256_slli_epi16(fifths, static_cast<int>(4 - g))
                                : _mm256_srli_epi16(fifths, static_cast<int>(g - 4));
    return _mm256_or_si256(low, _mm256_and_si256(fifth, _mm256_set1_epi8(16)));
  }
};

}  // namespace

void matvec_q5_k(const MatmulArgs& args) {
  matvec<SuperBlocks<Q5K>>(args);
}
void matmul_q5_k(const MatmulArgs& args) {
  matmul<SuperBlocks<Q5K>>(args);
}

}  // namespace sluice::kernels::avx2

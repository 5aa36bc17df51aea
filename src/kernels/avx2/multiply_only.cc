#include "kernels/avx2/avx2.h"
#include "kernels/avx2/intrinsics.h"

namespace sluice::kernels::avx2 {

/// vpmaddubsw and the addition of its pair sums; what else a kernel must do comes on top.
uint64_t multiply_only(uint64_t rounds) {
  constexpr size_t kChains = 8;
  constexpr size_t kProducts = 32;
  __m256i weights = _mm256_set1_epi8(1);
  __m256i x = _mm256_setzero_si256();
  keep(x);  // not known to be zero
  __m256i sums[kChains];
  for (__m256i& sum : sums) sum = x;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (__m256i& sum : sums) {
      keep(weights);  // not known to be the same again
      sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(weights, x));
    }
  }
  for (__m256i& sum : sums) asm volatile("" ::"x"(sum));
  return rounds * kChains * kProducts;
}

}  // namespace sluice::kernels::avx2

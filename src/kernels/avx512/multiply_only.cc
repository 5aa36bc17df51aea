#include "kernels/avx512/avx512.h"
#include "kernels/avx512/intrinsics.h"

namespace sluice::kernels::avx512 {

uint64_t multiply_only(uint64_t rounds) {
  constexpr size_t kChains = 12;  // more than the instruction's latency
  constexpr size_t kProducts = 64;
  __m512i weights = _mm512_set1_epi8(1);
  __m512i x = _mm512_setzero_si512();
  asm("" : "+v"(x));  // not known to be zero
  __m512i sums[kChains];
  for (__m512i& sum : sums) sum = x;
  for (uint64_t round = 0; round < rounds; ++round) {
    asm("" : "+v"(weights));  // not known to be the same again
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, weights, x);
  }
  for (const __m512i& sum : sums) asm volatile("" ::"v"(sum));
  return rounds * kChains * kProducts;
}

}  // namespace sluice::kernels::avx512

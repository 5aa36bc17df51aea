#include "kernels/neon/i8mm/i8mm.h"
#include "kernels/neon/intrinsics.h"

namespace sluice::kernels::i8mm {

uint64_t multiply_only(uint64_t rounds) {
  constexpr size_t kChains = 16;  // more than the instruction's latency times the pipes
  constexpr size_t kProducts = 32;
  int8x16_t weights = vdupq_n_s8(1);
  int8x16_t x = vdupq_n_s8(0);
  asm("" : "+w"(x));  // not known to be zero
  int32x4_t sums[kChains];
  for (int32x4_t& sum : sums) sum = vdupq_n_s32(0);
  for (uint64_t round = 0; round < rounds; ++round) {
    asm("" : "+w"(weights));  // not known to be the same again
    for (int32x4_t& sum : sums) sum = vmmlaq_s32(sum, weights, x);
  }
  for (const int32x4_t& sum : sums) asm volatile("" ::"w"(sum));
  return rounds * kChains * kProducts;
}

}  // namespace sluice::kernels::i8mm

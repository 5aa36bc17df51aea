// The steps that the super-block formats with integer scales share: the scaled sums of sub-blocks
// (as many as there are scales), and their mins. How q and scales are stored is the format's.
#pragma once

#include "base/half.h"
#include "kernels/ref/matmul.h"

namespace sluice::kernels::ref {

/// acc = fma(d·a, Σ_s scale_s Σ q·x, acc)
template <class Scale, size_t kCount>
static float add_scaled(uint16_t d, const Scale (&scale)[kCount], const int8_t* q,
                        const ActivationBlock& x, float acc) {
  constexpr size_t kSubBlock = kSuperBlock / kCount;
  int32_t sum = 0;
  for (size_t s = 0; s < kCount; ++s)
    sum += scale[s] * integer_dot(q + s * kSubBlock, x.q + s * kSubBlock, kSubBlock);
  return std::fma(f16_to_f32(d) * x.scale, static_cast<float>(sum), acc);
}

/// acc = fma(−(dmin·a), Σ_s min_s Σ x, acc)
template <size_t kCount>
static float subtract_mins(uint16_t dmin, const uint8_t (&min)[kCount], const ActivationBlock& x,
                           float acc) {
  constexpr size_t kSums = kSuperBlock / 16 / kCount;  // sums of 16 in a sub-block
  int32_t sum = 0;
  for (size_t i = 0; i < kSuperBlock / 16; ++i) sum += min[i / kSums] * x.sum16[i];
  return std::fma(-(f16_to_f32(dmin) * x.scale), static_cast<float>(sum), acc);
}

}  // namespace sluice::kernels::ref

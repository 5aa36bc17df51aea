// The step that Q4_K and Q5_K share: both are d · scale · q − dmin · min with the same packed
// scales; they differ only in how q is stored.
#pragma once

#include "base/half.h"
#include "kernels/ref/matmul.h"

namespace sluice::kernels::ref {

template <class Block>
static float add_scaled_and_min(const Block& block, const int8_t* q, const ActivationBlock& x,
                                float acc) {
  const KScales scales = unpack_k_scales(block.scales);
  int32_t scaled = 0;
  int32_t mins = 0;
  for (size_t s = 0; s < kKSubBlocks; ++s) {
    scaled += scales.scale[s] * integer_dot(q + 32 * s, x.q + 32 * s, 32);
    mins += scales.min[s] * (x.sum16[2 * s] + x.sum16[2 * s + 1]);
  }
  acc = std::fma(f16_to_f32(block.d) * x.scale, static_cast<float>(scaled), acc);
  return std::fma(-(f16_to_f32(block.dmin) * x.scale), static_cast<float>(mins), acc);
}

}  // namespace sluice::kernels::ref

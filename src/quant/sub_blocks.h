// What the super-block formats with integer scales share: how a weight comes of its code, the scale
// (and min) of its sub-block and the scale of the block, rounding as written. There are as many
// sub-blocks as scales. For the format files of this folder; plain functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "quant/dtype.h"

namespace sluice {

/// w = (d · scale_s) · q for the 256 weights of a block; `d` as stored.
template <size_t kCount>
void decode_scaled(uint16_t d, const int8_t (&scale)[kCount], const int8_t* q, float* out) {
  for (size_t s = 0; s < kCount; ++s) {
    const float step = f16_to_f32(d) * static_cast<float>(scale[s]);
    for (size_t i = 0; i < kSuperBlock / kCount; ++i) *out++ = step * static_cast<float>(*q++);
  }
}

/// w = (d · scale_s) · q − (dmin · min_s); `d` and `dmin` as stored.
template <size_t kCount>
void decode_scaled_with_min(uint16_t d, uint16_t dmin, const uint8_t (&scale)[kCount],
                            const uint8_t (&min)[kCount], const int8_t* q, float* out) {
  for (size_t s = 0; s < kCount; ++s) {
    const float step = f16_to_f32(d) * static_cast<float>(scale[s]);
    const float depth = f16_to_f32(dmin) * static_cast<float>(min[s]);
    for (size_t i = 0; i < kSuperBlock / kCount; ++i)
      *out++ = step * static_cast<float>(*q++) - depth;
  }
}

}  // namespace sluice

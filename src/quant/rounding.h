// Shared by the encoders: rounding a weight to its integer.
#pragma once

#include <cmath>
#include <cstdint>

namespace sluice {

/// x / step rounded to the nearest integer in low … high; 0 (kept within the limits) for a zero
/// step, which a block of zeros has.
inline int round_to_step(float x, float step, int low, int high) {
  const float q = step != 0.0f ? std::nearbyint(x / step) : 0.0f;
  if (q <= static_cast<float>(low)) return low;
  if (q >= static_cast<float>(high)) return high;
  return static_cast<int>(q);
}

/// The value of largest magnitude, with its sign; the first of equals.
inline float largest_magnitude(const float* x, size_t count) {
  float largest = 0.0f;
  for (size_t i = 0; i < count; ++i)
    if (std::abs(x[i]) > std::abs(largest)) largest = x[i];
  return largest;
}

}  // namespace sluice

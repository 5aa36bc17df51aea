// The shared scale packing of Q4_K and Q5_K; blocks.h draws it.
#include "quant/blocks.h"

namespace sluice {

KScales unpack_k_scales(const uint8_t* packed) {
  KScales scales;
  for (size_t s = 0; s < 4; ++s) {
    const uint8_t with_scale = packed[s];
    const uint8_t with_min = packed[4 + s];
    const uint8_t low_halves = packed[8 + s];
    scales.scale[s] = with_scale & 63;
    scales.min[s] = with_min & 63;
    scales.scale[4 + s] = static_cast<uint8_t>((low_halves & 15) | (with_scale >> 6 << 4));
    scales.min[4 + s] = static_cast<uint8_t>((low_halves >> 4) | (with_min >> 6 << 4));
  }
  return scales;
}

void pack_k_scales(const KScales& scales, uint8_t* packed) {
  for (size_t s = 0; s < 4; ++s) {
    const uint8_t scale = scales.scale[4 + s];
    const uint8_t min = scales.min[4 + s];
    packed[s] = static_cast<uint8_t>(scales.scale[s] | (scale >> 4 << 6));
    packed[4 + s] = static_cast<uint8_t>(scales.min[s] | (min >> 4 << 6));
    packed[8 + s] = static_cast<uint8_t>((scale & 15) | ((min & 15) << 4));
  }
}

}  // namespace sluice

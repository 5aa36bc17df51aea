#include "quant/k_formats.h"

#include <algorithm>

#include "base/half.h"
#include "quant/rounding.h"
#include "quant/sub_blocks.h"

namespace sluice {
namespace {

constexpr size_t kSubBlock = kSuperBlock / kKSubBlocks;
constexpr int kScaleMax = 63;

}  // namespace

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

void decode_k_block(uint16_t d, uint16_t dmin, const uint8_t* packed_scales, const int8_t* q,
                    float* out) {
  const KScales scales = unpack_k_scales(packed_scales);
  decode_scaled_with_min(d, dmin, scales.scale, scales.min, q, out);
}

KEncoding encode_k_block(const float* x, int q_max) {
  float range[kKSubBlocks];  // per sub-block: the step that reaches from low to high in q_max
  float depth[kKSubBlocks];  // per sub-block: how far it goes below zero (a min cannot raise)
  for (size_t s = 0; s < kKSubBlocks; ++s) {
    const auto [low, high] = std::minmax_element(x + s * kSubBlock, x + (s + 1) * kSubBlock);
    depth[s] = std::max(0.0f, -*low);
    range[s] = std::max(0.0f, *high + depth[s]) / static_cast<float>(q_max);
  }
  KEncoding code;
  code.d = f32_to_f16(largest_magnitude(range, kKSubBlocks) / kScaleMax);
  code.dmin = f32_to_f16(largest_magnitude(depth, kKSubBlocks) / kScaleMax);
  const float d = f16_to_f32(code.d);
  const float dmin = f16_to_f32(code.dmin);
  KScales scales;
  for (size_t s = 0; s < kKSubBlocks; ++s) {
    scales.scale[s] = static_cast<uint8_t>(round_to_step(range[s], d, 0, kScaleMax));
    scales.min[s] = static_cast<uint8_t>(round_to_step(depth[s], dmin, 0, kScaleMax));
    const float step = d * static_cast<float>(scales.scale[s]);
    const float min = dmin * static_cast<float>(scales.min[s]);
    for (size_t i = s * kSubBlock; i < (s + 1) * kSubBlock; ++i)
      code.q[i] = static_cast<uint8_t>(round_to_step(x[i] + min, step, 0, q_max));
  }
  pack_k_scales(scales, code.packed_scales);
  return code;
}

}  // namespace sluice

// How the kernels of this folder see a block of IQ4_XS; for iq4_xs.cc here and in i8mm/.
#pragma once

#include "kernels/neon/nibble_values.h"
#include "kernels/neon/super_block.h"

namespace sluice::kernels::neon {
namespace {

struct IQ4XS {
  using Block = BlockIQ4_XS;
  static constexpr size_t kSubBlock = 32;

  static int8x16_t codes(const std::byte* block, size_t g) {
    const uint8x16_t both = load16(block + offsetof(Block, qs) + 16 * (g / 2));
    return look_up(kIq4Table, nibbles(both, g % 2));
  }

  /// quant/blocks.h describes the packing.
  static PerSubBlock<8> scales(const std::byte* block) {
    const auto halves = load_integer<uint32_t>(block + offsetof(Block, scales_l));
    const auto twos = uint32_t{load_integer<uint16_t>(block + offsetof(Block, scales_h))};
    return {{four_scales(halves, twos << 4), four_scales(halves >> 16, twos >> 4)}};
  }

 private:
  /// Four bits of each scale lie at bit 4·s of one word, the upper two at bit 4 + 2·s of the other.
  static int32x4_t four_scales(uint32_t halves, uint32_t twos) {
    const int32x4_t twice = {0, -2, -4, -6};
    const int32x4_t four_times = {0, -4, -8, -12};
    const uint32x4_t low = vandq_u32(vshlq_u32(vdupq_n_u32(halves), four_times), vdupq_n_u32(15));
    const uint32x4_t high = vandq_u32(vshlq_u32(vdupq_n_u32(twos), twice), vdupq_n_u32(48));
    return vsubq_s32(vreinterpretq_s32_u32(vorrq_u32(low, high)), vdupq_n_s32(32));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon

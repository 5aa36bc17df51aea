// How the kernels of this folder see a block of Q3_K; for q3_k.cc here and in i8mm/.
#pragma once

#include "kernels/neon/super_block.h"

namespace sluice::kernels::neon {
namespace {

struct Q3K {
  using Block = BlockQ3_K;
  static constexpr size_t kSubBlock = 16;

  static int8x16_t codes(const std::byte* block, size_t g) {
    const uint8x16_t thirds = load16(block + offsetof(Block, hmask) + 16 * (g % 2));
    const uint8x16_t low = two_bits(block + offsetof(Block, qs), g);
    const uint8x16_t stored = vorrq_u8(low, move_bits(thirds, g / 2, 2, 4));
    return vsubq_s8(as_signed(stored), vdupq_n_s8(4));
  }

  /// quant/blocks.h describes the packing (unpack_q3_k_scales).
  static PerSubBlock<16> scales(const std::byte* block) {
    const std::byte* packed = block + offsetof(Block, scales);
    const uint8x16_t low = nibbles_of_eight(load8(packed));
    const int32x4_t down = {0, -2, -4, -6};
    const uint32x4_t twos = vshlq_u32(vdupq_n_u32(load_integer<uint32_t>(packed + 8)), down);
    const uint8x16_t high = move_bits(vreinterpretq_u8_u32(twos), 0, 4, 48);
    return widen(vsubq_s8(as_signed(vorrq_u8(low, high)), vdupq_n_s8(32)));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon

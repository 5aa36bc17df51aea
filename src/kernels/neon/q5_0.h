// How the kernels of this folder see a block of Q5_0; for q5_0.cc here and in i8mm/.
#pragma once

#include "kernels/neon/small_block.h"

namespace sluice::kernels::neon {
namespace {

struct Q50 {
  using Block = BlockQ5_0;

  /// The fifth bit of code i is bit i % 8 of byte i / 8. Where it is not set, 16 comes off.
  static int8x16_t codes(const std::byte* block, size_t half) {
    const uint8x16_t both = load16(block + offsetof(Block, qs));
    const uint8x8_t low = vdup_n_u8(load_integer<uint8_t>(block + offsetof(Block, qh) + 2 * half));
    const uint8x8_t high =
        vdup_n_u8(load_integer<uint8_t>(block + offsetof(Block, qh) + 2 * half + 1));
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    const uint8x16_t set = vtstq_u8(vcombine_u8(low, high), bit);
    return vsubq_s8(as_signed(nibbles(both, half)), as_signed(vbicq_u8(vdupq_n_u8(16), set)));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon

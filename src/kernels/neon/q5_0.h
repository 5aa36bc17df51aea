// How the kernels of this folder see a block of Q5_0; for q5_0.cc here and in i8mm/.
#pragma once

#include "kernels/neon/plain_block.h"

namespace sluice::kernels::neon {
namespace {

struct Q50 : HalfScaled<BlockQ5_0> {
  /// Where the fifth bit is not set, 16 comes off.
  static int8x16_t codes(const std::byte* block, size_t half) {
    const uint8x16_t both = load16(block + offsetof(Block, qs));
    const uint8x16_t set = lanes_of_bits(block + offsetof(Block, qh) + 2 * half);
    return vsubq_s8(as_signed(nibbles(both, half)), as_signed(vbicq_u8(vdupq_n_u8(16), set)));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon

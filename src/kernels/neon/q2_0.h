// How the kernels of this folder see a block of Q2_0; for q2_0.cc here and in i8mm/.
#pragma once

#include "kernels/neon/plain_block.h"

namespace sluice::kernels::neon {
namespace {

struct Q20 : HalfScaled<BlockQ2_0, BlockQ2_0::kElements> {
  /// Each of four bytes is spread over four lanes, and shifted there by 0, 2, 4 and 6.
  static int8x16_t codes(const std::byte* block, size_t g) {
    const auto four = load_integer<uint32_t>(block + offsetof(Block, qs) + 4 * g);
    const uint8x16_t spread = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    const int8x16_t down = {0, -2, -4, -6, 0, -2, -4, -6, 0, -2, -4, -6, 0, -2, -4, -6};
    const uint8x16_t bytes = vqtbl1q_u8(vreinterpretq_u8_u32(vdupq_n_u32(four)), spread);
    const uint8x16_t stored = vandq_u8(vshlq_u8(bytes, down), vdupq_n_u8(3));
    return vsubq_s8(as_signed(stored), vdupq_n_s8(1));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon

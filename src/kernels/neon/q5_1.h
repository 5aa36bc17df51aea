// How the kernels of this folder see a block of Q5_1; for q5_1.cc here and in i8mm/.
#pragma once

#include "kernels/neon/plain_block.h"

namespace sluice::kernels::neon {
namespace {

struct Q51 : HalfScaled<BlockQ5_1> {
  static int8x16_t codes(const std::byte* block, size_t half) {
    const uint8x16_t both = load16(block + offsetof(Block, qs));
    const uint8x16_t set = lanes_of_bits(block + offsetof(Block, qh) + 2 * half);
    return as_signed(vorrq_u8(nibbles(both, half), vandq_u8(set, vdupq_n_u8(16))));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon

// How the kernels of this folder see a block of Q4_0; for q4_0.cc here and in i8mm/.
#pragma once

#include "kernels/neon/plain_block.h"

namespace sluice::kernels::neon {
namespace {

struct Q40 : HalfScaled<BlockQ4_0> {
  static int8x16_t codes(const std::byte* block, size_t half) {
    const uint8x16_t both = load16(block + offsetof(Block, qs));
    return vsubq_s8(as_signed(nibbles(both, half)), vdupq_n_s8(8));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon

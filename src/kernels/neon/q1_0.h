// How the kernels of this folder see a block of Q1_0; for q1_0.cc here and in i8mm/.
#pragma once

#include "kernels/neon/plain_block.h"

namespace sluice::kernels::neon {
namespace {

struct Q10 : HalfScaled<BlockQ1_0, BlockQ1_0::kElements> {
  static int8x16_t codes(const std::byte* block, size_t g) {
    const uint8x16_t set = lanes_of_bits(block + offsetof(Block, qs) + 2 * g);
    return vbslq_s8(set, vdupq_n_s8(1), vdupq_n_s8(-1));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon

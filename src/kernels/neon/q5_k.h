// How the kernels of this folder see a block of Q5_K; for q5_k.cc here and in i8mm/.
#pragma once

#include "kernels/neon/k_header.h"

namespace sluice::kernels::neon {
namespace {

struct Q5K : KHeader<BlockQ5_K> {
  static int8x16_t codes(const std::byte* block, size_t g) {
    const uint8x16_t fifths = load16(block + offsetof(Block, qh) + 16 * (g % 2));
    return as_signed(vorrq_u8(low_bits(block, g), move_bits(fifths, g / 2, 4, 16)));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon

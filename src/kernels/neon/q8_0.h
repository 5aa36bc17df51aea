// How the kernels of this folder see a block of Q8_0; for q8_0.cc here and in i8mm/.
#pragma once

#include "kernels/neon/plain_block.h"

namespace sluice::kernels::neon {
namespace {

struct Q80 : HalfScaled<BlockQ8_0> {
  static int8x16_t codes(const std::byte* block, size_t half) {
    return as_signed(load16(block + offsetof(Block, qs) + 16 * half));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon

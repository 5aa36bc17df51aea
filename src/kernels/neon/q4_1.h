// How the kernels of this folder see a block of Q4_1; for q4_1.cc here and in i8mm/.
#pragma once

#include "kernels/neon/plain_block.h"

namespace sluice::kernels::neon {
namespace {

struct Q41 : HalfScaled<BlockQ4_1> {
  static int8x16_t codes(const std::byte* block, size_t half) {
    return as_signed(nibbles(load16(block + offsetof(Block, qs)), half));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon

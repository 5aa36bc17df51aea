// How the kernels of this folder see a block of IQ4_NL; for iq4_nl.cc here and in i8mm/.
#pragma once

#include "kernels/neon/nibble_values.h"
#include "kernels/neon/plain_block.h"

namespace sluice::kernels::neon {
namespace {

struct IQ4NL : HalfScaled<BlockIQ4_NL> {
  static int8x16_t codes(const std::byte* block, size_t half) {
    return look_up(kIq4Table, nibbles(load16(block + offsetof(Block, qs)), half));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon

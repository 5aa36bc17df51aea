// How the kernels of this folder see blocks of TQ1_0 and TQ2_0; for ternary.cc here and in i8mm/.
#pragma once

#include "kernels/neon/plain_block.h"

namespace sluice::kernels::neon {
namespace {

/// A byte is a fraction of base 3. Multiplied by a power of 3, with what is above one falling off,
/// it has another digit in front (quant/blocks.h).
struct TQ10 : HalfScaled<BlockTQ1_0, kSuperBlock, kSuperBlock> {
  static int8x16_t codes(const std::byte* block, size_t g) {
    const std::byte* qs = block + offsetof(Block, qs);
    if (g < 10) return front_digits(load16(qs + 16 * (g % 2)), vdupq_n_u8(power(g / 2)));
    if (g < 15) return front_digits(load16(qs + 32), vdupq_n_u8(power(g - 10)));
    const auto last = load_integer<uint32_t>(block + offsetof(Block, qh));
    const uint8x16_t powers = {1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27};
    return front_digits(vreinterpretq_u8_u32(vdupq_n_u32(last)), powers);
  }

 private:
  static constexpr uint8_t power(size_t digit) {
    constexpr uint8_t kPowers[] = {1, 3, 9, 27, 81};
    return kPowers[digit];
  }

  /// The digits less one. A digit is at least 1 from a third on, and 2 from two thirds on; true is
  /// −1 here.
  static int8x16_t front_digits(uint8x16_t bytes, uint8x16_t powers) {
    const uint8x16_t fractions = vmulq_u8(bytes, powers);
    const int8x16_t above_one = as_signed(vcgeq_u8(fractions, vdupq_n_u8(86)));
    const int8x16_t above_two = as_signed(vcgeq_u8(fractions, vdupq_n_u8(171)));
    return vsubq_s8(vsubq_s8(vdupq_n_s8(-1), above_one), above_two);
  }
};

struct TQ20 : HalfScaled<BlockTQ2_0, kSuperBlock, kSuperBlock> {
  static int8x16_t codes(const std::byte* block, size_t g) {
    return vsubq_s8(as_signed(two_bits(block + offsetof(Block, qs), g)), vdupq_n_s8(1));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon
